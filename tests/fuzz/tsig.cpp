#include <string_view>

#include "dns/message/message.h"
#include "dns/tsig/tsig.h"

// Any octets as a request or a response: never a crash, never accepted unless really signed. What
// has no TSIG is signed, and must then verify; each answer to it as well.

namespace {

using namespace pando;
using namespace pando::dns;

constexpr std::uint64_t kNow = 1'700'000'000;

TsigKeyring make_keys() {
  TsigKeyring keys;
  const std::string_view secret = "0123456789abcdef0123456789abcdef";
  for (const auto algorithm : {TsigAlgorithm::kMd5, TsigAlgorithm::kSha256}) {
    const auto name = Name::from_text(to_text(algorithm) + ".key.");
    PANDO_ASSERT(name);
    PANDO_ASSERT(keys.add({*name, algorithm, Bytes(secret.begin(), secret.end()), 0}));
  }
  return keys;
}

const TsigKeyring& keys() {
  static const TsigKeyring ring = make_keys();
  return ring;
}

const TsigKeyring::PreparedKey& client_key() {
  return *keys().find(*Name::from_text("hmac-sha256.key."));
}

Bytes bare_response() {
  Bytes message(kHeaderOctets);
  message[2] = 0x80;
  return message;
}

/// The answer that a verdict asks for is whole and says so.
void answer(const TsigVerdict& verdict) {
  TsigSession server = TsigSession::for_response(verdict);
  Bytes response = bare_response();
  const std::size_t overhead = server.overhead();
  PANDO_ASSERT(server.sign(response, kNow));
  PANDO_ASSERT(response.size() == kHeaderOctets + overhead);
  const auto found = find_tsig(response);
  PANDO_ASSERT(found && found->has_value() == (overhead != 0));
  if (*found) PANDO_ASSERT((*found)->error == static_cast<std::uint16_t>(verdict.tsig_error));
}

/// A message without TSIG, signed by the client, verifies; so does the answer.
void sign_and_verify(ByteView message) {
  TsigSession client = TsigSession::for_request(client_key());
  Bytes request(message.begin(), message.end());
  if (!client.sign(request, kNow)) return;
  const auto found = find_tsig(request);
  if (!found || !*found || (*found)->offset != message.size()) return;  // octets behind the records
  const TsigVerdict verdict = TsigSession::verify_request(request, **found, keys(), kNow + 1);
  PANDO_ASSERT(verdict.rcode == Rcode::kNoError && verdict.key == &client_key());
  TsigSession server = TsigSession::for_response(verdict);
  for (int i = 0; i < 3; ++i) {
    Bytes response = bare_response();
    PANDO_ASSERT(server.sign(response, kNow + 2));
    PANDO_ASSERT(client.verify_response(response, kNow + 3));
  }
  PANDO_ASSERT(client.finish());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView message(data, size);
  TsigSession client = TsigSession::for_request(client_key());
  PANDO_ASSERT(!client.verify_response(message, kNow));
  const auto found = find_tsig(message);
  if (!found) return 0;
  if (!*found) {
    sign_and_verify(message);
    return 0;
  }
  const TsigVerdict verdict = TsigSession::verify_request(message, **found, keys(), kNow);
  answer(verdict);
  return 0;
}
