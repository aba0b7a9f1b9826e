// The makers of the corpus, by file; see make_corpus.cc.
#pragma once
#include <string>

#include "core/base/bytes.h"

namespace ccixfer::fuzz {

void put(const std::string& target, Bytes bytes);  // the next input of that target

void make_peers();  // corpus_peers.cc: what peers of whole transports say
void make_texts();  // corpus_texts.cc: files, texts, and the messages of a measurement
void make_trust();  // corpus_trust.cc: ids, tickets, keys, certificates, handshakes and sealed bytes

}  // namespace ccixfer::fuzz
