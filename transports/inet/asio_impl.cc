// Asio is compiled once, here: it is used for resolving names only, and every header of it stays out of ours.
#include <boost/asio/impl/src.hpp>
