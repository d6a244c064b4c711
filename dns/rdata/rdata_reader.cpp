#include "dns/rdata/rdata_field.h"

namespace pando::dns {

Status WireReader::skip(std::size_t octets) {
  if (left() < octets) return fail(Errc::kTruncated, "cut short");
  at += octets;
  return {};
}

Status WireReader::skip_counted(std::size_t least) {
  if (left() == 0 || data[at] > left() - 1) return fail(Errc::kTruncated, "cut short");
  if (data[at] < least) return fail(Errc::kInvalid, "empty");
  at += data[at] + 1U;
  return {};
}

Status WireReader::skip_rest(std::size_t least) {
  if (left() < least) return fail(Errc::kTruncated, "{}", left() == 0 ? "missing" : "cut short");
  at = data.size();
  return {};
}

Result<std::string_view> TextReader::word() {
  if (at_end()) return fail(Errc::kTruncated, "missing");
  const Token& token = tokens_[at_++];
  if (token.quoted) return fail(Errc::kInvalid, "may not be quoted");
  return token.text;
}

Result<Token> TextReader::token() {
  if (at_end()) return fail(Errc::kTruncated, "missing");
  return tokens_[at_++];
}

}  // namespace pando::dns
