// OpenSSL takes its memory by operator new here, so that it is on the account of the end that needs it.
#include <malloc.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace {

void* take(size_t size, const char*, int) { return size == 0 ? nullptr : ::operator new(size); }
void give_back(void* memory, const char*, int) { ::operator delete(memory); }
void* resize(void* memory, size_t size, const char* file, int line) {
  void* moved = take(size, file, line);
  if (memory != nullptr && moved != nullptr) std::memcpy(moved, memory, std::min(size, malloc_usable_size(memory)));
  give_back(memory, file, line);
  return moved;
}
[[maybe_unused]] const int is_set = CRYPTO_set_mem_functions(take, resize, give_back);  // before the first of it is taken

}  // namespace
