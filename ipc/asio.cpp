// The bodies of Asio's functions, compiled once for all programs (ASIO_SEPARATE_COMPILATION).
#include <asio/impl/src.hpp>
