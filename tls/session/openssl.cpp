#include "tls/session/openssl.h"

#include <openssl/err.h>

namespace pando::tls {

std::string take_openssl_error(const char* otherwise) {
  const char* const reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  std::string text = reason != nullptr ? reason : otherwise;
  ::ERR_clear_error();
  return text;
}

}  // namespace pando::tls
