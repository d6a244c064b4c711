#include "dns/tsig/tsig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dns/message/message.h"
#include "tests/unit/dns/tsig/tsig_vectors.h"

namespace pando::dns {
namespace tsig_test {

using ::testing::HasSubstr;
using vectors::kTime;

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Name name(std::string_view text) { return *Name::from_text(text); }

TsigKey vector_key(std::string_view algorithm) {
  return {name(vectors::kKeyName), *tsig_algorithm_from_text(algorithm), from_hex(vectors::kSecret),
          0};
}

TsigKeyring ring_of(TsigKey key) {
  TsigKeyring keys;
  EXPECT_TRUE(keys.add(std::move(key)));
  return keys;
}

TsigKeyring vector_ring(std::string_view algorithm = "hmac-sha256", std::uint16_t least_mac = 0) {
  TsigKey key = vector_key(algorithm);
  key.least_mac_octets = least_mac;
  return ring_of(std::move(key));
}

const vectors::Exchange& sha256_exchange() { return vectors::kExchanges[3]; }

TsigRecord tsig_of(ByteView message) {
  auto found = find_tsig(message);
  EXPECT_TRUE(found && *found);
  return **found;
}

/// The message as it was before its TSIG record was appended.
Bytes without_tsig(const Bytes& message) {
  Bytes bare(message.begin(),
             message.begin() + static_cast<std::ptrdiff_t>(tsig_of(message).offset));
  store_be16(&bare[10], static_cast<std::uint16_t>(load_be16(&bare[10]) - 1));
  return bare;
}

TsigVerdict verify(const Bytes& request, const TsigKeyring& keys, std::uint64_t now = kTime) {
  return TsigSession::verify_request(request, tsig_of(request), keys, now);
}

Bytes bare_query() {
  std::vector<std::uint8_t> space(512);
  MessageWriter writer(space, space.size());
  Header header;
  header.id = 99;
  writer.put_header(header);
  EXPECT_TRUE(writer.put_question(name("www.example."), RRType::kA, RRClass::kIN));
  const ByteView view = writer.finish();
  return {view.begin(), view.end()};
}

Bytes bare_response() {
  Bytes response = bare_query();
  response[2] |= 0x80;
  return response;
}

/// A request signed with `keys`' only key at kTime, and the client's session.
struct SignedRequest {
  explicit SignedRequest(const TsigKeyring& keys)
      : client(TsigSession::for_request(*keys.find(name(vectors::kKeyName)))) {
    EXPECT_TRUE(client.sign(message, kTime));
  }
  Bytes message = bare_query();
  TsigSession client;
};

TEST(TsigVectors, RequestsOfAnotherImplementationVerifyWithEachAlgorithm) {
  for (const auto& exchange : vectors::kExchanges) {
    const TsigKeyring keys = vector_ring(exchange.algorithm);
    const TsigVerdict verdict = verify(from_hex(exchange.request), keys);
    EXPECT_EQ(verdict.rcode, Rcode::kNoError) << exchange.algorithm;
    EXPECT_EQ(verdict.tsig_error, Rcode::kNoError);
    EXPECT_EQ(verdict.key, keys.find(name("update-key.example.")));
  }
}

TEST(TsigVectors, OurAnswersAreTheirsOctetByOctet) {
  for (const auto& exchange : vectors::kExchanges) {
    const TsigKeyring keys = vector_ring(exchange.algorithm);
    const Bytes expected = from_hex(exchange.answer);
    TsigSession session = TsigSession::for_response(verify(from_hex(exchange.request), keys));
    Bytes answer = without_tsig(expected);
    const std::size_t size = answer.size();
    EXPECT_EQ(expected.size() - size, session.overhead());
    ASSERT_TRUE(session.sign(answer, kTime + 3));
    EXPECT_EQ(answer, expected) << exchange.algorithm;
  }
}

/// Exchanges under a name with a number of bits; our own requests have BIND's form instead.
bool names_a_cut(const vectors::Exchange& exchange) {
  return std::string_view(exchange.algorithm).find('-', 5) != std::string_view::npos;
}

TEST(TsigVectors, TheirAnswersVerifyAgainstOurRequest) {
  for (const auto& exchange : vectors::kExchanges) {
    if (names_a_cut(exchange)) continue;
    const TsigKeyring keys = vector_ring(exchange.algorithm);
    TsigSession client = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
    Bytes request = without_tsig(from_hex(exchange.request));
    ASSERT_TRUE(client.sign(request, kTime));
    EXPECT_EQ(tsig_of(request).mac, tsig_of(from_hex(exchange.request)).mac);
    const Status verified = client.verify_response(from_hex(exchange.answer), kTime + 5);
    EXPECT_TRUE(verified) << verified.error().text;
    EXPECT_TRUE(client.finish());
  }
}

/// A client that has sent the request of a stream.
TsigSession client_of(const vectors::Stream& stream, const TsigKeyring& keys) {
  TsigSession client = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
  Bytes request = without_tsig(from_hex(stream.request));
  EXPECT_TRUE(client.sign(request, kTime));
  return client;
}

TEST(TsigVectors, AStreamWithAnUnsignedMessageInTheMiddleVerifies) {
  for (const auto& stream : vectors::kStreams) {
    const TsigKeyring keys = vector_ring(stream.algorithm);
    TsigSession client = client_of(stream, keys);
    EXPECT_FALSE(client.finish());
    EXPECT_TRUE(client.verify_response(from_hex(stream.messages[0]), kTime));
    EXPECT_TRUE(client.finish());
    EXPECT_TRUE(client.verify_response(from_hex(stream.messages[1]), kTime));
    EXPECT_FALSE(client.finish()) << "an unsigned tail is not proven";
    const Status last = client.verify_response(from_hex(stream.messages[2]), kTime);
    EXPECT_TRUE(last) << last.error().text;
    EXPECT_TRUE(client.finish());
  }
}

TEST(TsigVectors, AStreamWhoseUnsignedMessageWasChangedDoesNotVerify) {
  const auto& stream = vectors::kStreams[1];
  const TsigKeyring keys = vector_ring(stream.algorithm);
  const Bytes middle = from_hex(stream.messages[1]);
  for (std::size_t i = 0; i < middle.size(); ++i) {
    TsigSession client = client_of(stream, keys);
    ASSERT_TRUE(client.verify_response(from_hex(stream.messages[0]), kTime));
    Bytes changed = middle;
    changed[i] ^= 0x01;
    const bool accepted = static_cast<bool>(client.verify_response(changed, kTime));
    EXPECT_FALSE(accepted && client.verify_response(from_hex(stream.messages[2]), kTime)) << i;
  }
}

TEST(TsigVectors, AStreamThatLostAMessageDoesNotVerify) {
  const auto& stream = vectors::kStreams[1];
  const TsigKeyring keys = vector_ring(stream.algorithm);
  TsigSession client = client_of(stream, keys);
  ASSERT_TRUE(client.verify_response(from_hex(stream.messages[0]), kTime));
  EXPECT_FALSE(client.verify_response(from_hex(stream.messages[2]), kTime));
}

TEST(TsigVectors, ARefusedMessageLeavesTheSessionAsItWas) {
  const auto& stream = vectors::kStreams[1];
  const TsigKeyring keys = vector_ring(stream.algorithm);
  TsigSession client = client_of(stream, keys);
  EXPECT_FALSE(client.verify_response(from_hex(stream.messages[1]), kTime)) << "first: unsigned";
  EXPECT_FALSE(client.verify_response(from_hex(stream.messages[2]), kTime)) << "first: the last";
  EXPECT_TRUE(client.verify_response(from_hex(stream.messages[0]), kTime));
  EXPECT_TRUE(client.verify_response(from_hex(stream.messages[1]), kTime));
  EXPECT_FALSE(client.verify_response(from_hex(stream.messages[0]), kTime)) << "replayed";
  EXPECT_TRUE(client.verify_response(from_hex(stream.messages[2]), kTime));
}

TEST(TsigVectors, ASignedBadTimeIsReported) {
  const TsigKeyring keys = vector_ring();
  TsigSession client = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
  Bytes request = without_tsig(from_hex(sha256_exchange().request));
  ASSERT_TRUE(client.sign(request, kTime));
  const Status refused = client.verify_response(from_hex(vectors::kBadTime), kTime);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kDenied);
  EXPECT_THAT(refused.error().text, HasSubstr("BADTIME"));
}

TEST(TsigVectors, OurBadTimeIsTheirsOctetByOctet) {
  const TsigKeyring keys = vector_ring();
  const TsigVerdict verdict = verify(from_hex(sha256_exchange().request), keys, kTime + 10000);
  EXPECT_EQ(verdict.rcode, Rcode::kNotAuth);
  EXPECT_EQ(verdict.tsig_error, Rcode::kBadTime);
  TsigSession session = TsigSession::for_response(verdict);
  const Bytes expected = from_hex(vectors::kBadTime);
  Bytes refusal = without_tsig(expected);
  EXPECT_EQ(expected.size() - refusal.size(), session.overhead());
  ASSERT_TRUE(session.sign(refusal, kTime + 10000));
  EXPECT_EQ(refusal, expected);
}

TEST(TsigRequest, AnyChangedBitIsFoundButForTheIdAndTheCaseOfNames) {
  const TsigKeyring keys = vector_ring();
  const Bytes request = from_hex(sha256_exchange().request);
  const TsigRecord record = tsig_of(request);
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < request.size() * 8; ++bit) {
    Bytes changed = request;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto found = find_tsig(changed);
    if (!found || !*found) continue;
    const TsigVerdict verdict = TsigSession::verify_request(changed, **found, keys, kTime);
    if (verdict.rcode != Rcode::kNoError) continue;
    ++accepted;
    const bool names_differ_in_case = bit % 8 == 5 && bit / 8 > record.offset &&
                                      (*found)->key_name == record.key_name &&
                                      (*found)->algorithm_name == record.algorithm_name;
    EXPECT_TRUE(bit / 8 < 2 || names_differ_in_case) << "bit " << bit;
  }
  EXPECT_GT(accepted, 16U) << "RFC 8945 §4.2: the original ID is digested, not the header's";
}

TEST(TsigRequest, AnyChangedOctetOfAnAnswerIsFound) {
  const TsigKeyring keys = vector_ring();
  const Bytes answer = from_hex(sha256_exchange().answer);
  const std::size_t tsig = tsig_of(answer).offset;
  for (std::size_t i = 2; i < answer.size(); ++i) {
    TsigSession client = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
    Bytes request = without_tsig(from_hex(sha256_exchange().request));
    ASSERT_TRUE(client.sign(request, kTime));
    Bytes changed = answer;
    changed[i] ^= 0x81;
    EXPECT_FALSE(client.verify_response(changed, kTime)) << i << ", TSIG at " << tsig;
  }
}

TEST(TsigRequest, AForwardersIdIsIgnored) {
  Bytes request = from_hex(sha256_exchange().request);
  store_be16(request.data(), 0xFFFF);
  EXPECT_EQ(verify(request, vector_ring()).rcode, Rcode::kNoError);
}

TEST(TsigRequest, AnUnknownKeyIsBadKey) {
  TsigKey key = vector_key("hmac-sha256");
  key.name = name("other.example.");
  const TsigVerdict verdict = verify(from_hex(sha256_exchange().request), ring_of(std::move(key)));
  EXPECT_EQ(verdict.rcode, Rcode::kNotAuth);
  EXPECT_EQ(verdict.tsig_error, Rcode::kBadKey);
  EXPECT_EQ(verdict.key, nullptr);
}

TEST(TsigRequest, AKnownKeyWithAnotherAlgorithmIsBadKey) {
  const TsigVerdict verdict =
      verify(from_hex(sha256_exchange().request), vector_ring("hmac-sha512"));
  EXPECT_EQ(verdict.tsig_error, Rcode::kBadKey);
  EXPECT_EQ(verdict.key, nullptr);
}

TEST(TsigRequest, AnotherSecretIsBadSig) {
  TsigKey key = vector_key("hmac-sha256");
  key.secret.back() ^= 1;
  const TsigVerdict verdict = verify(from_hex(sha256_exchange().request), ring_of(std::move(key)));
  EXPECT_EQ(verdict.rcode, Rcode::kNotAuth);
  EXPECT_EQ(verdict.tsig_error, Rcode::kBadSig);
}

TEST(TsigRequest, TheFudgeIsTheLastSecondThatCounts) {
  const TsigKeyring keys = vector_ring();
  const Bytes request = from_hex(sha256_exchange().request);
  EXPECT_EQ(verify(request, keys, kTime + 300).rcode, Rcode::kNoError);
  EXPECT_EQ(verify(request, keys, kTime - 300).rcode, Rcode::kNoError);
  EXPECT_EQ(verify(request, keys, kTime + 301).tsig_error, Rcode::kBadTime);
  EXPECT_EQ(verify(request, keys, kTime - 301).tsig_error, Rcode::kBadTime);
}

TEST(TsigRequest, AWrongMacIsBadSigEvenWhenTheTimeIsWrongToo) {
  Bytes request = from_hex(sha256_exchange().request);
  request[20] ^= 1;  // in the question's name
  EXPECT_EQ(verify(request, vector_ring(), kTime + 9999).tsig_error, Rcode::kBadSig);
}

/// `message` with its MAC cut or padded to `octets`.
Bytes with_mac_octets(const Bytes& message, std::size_t octets) {
  TsigRecord record = tsig_of(message);
  Bytes changed(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(record.offset));
  append(changed, record.key_name.view().bytes());
  append_be32(changed, 250U << 16 | 255);  // TYPE, CLASS
  append_be32(changed, 0);
  append_be16(changed, static_cast<std::uint16_t>(record.algorithm_name.size() + 16 + octets));
  append(changed, record.algorithm_name.view().bytes());
  append_be16(changed, static_cast<std::uint16_t>(record.time_signed >> 32));
  append_be32(changed, static_cast<std::uint32_t>(record.time_signed));
  append_be16(changed, record.fudge);
  append_be16(changed, static_cast<std::uint16_t>(octets));
  record.mac.resize(octets);
  append(changed, record.mac);
  append_be16(changed, record.original_id);
  append_be32(changed, 0);  // error, Other Len
  return changed;
}

TEST(TsigTruncation, OnlyWholeMacsAreAcceptedUnlessTheKeysPolicyAllowsLess) {
  const Bytes request = from_hex(sha256_exchange().request);
  const TsigKeyring keys = vector_ring();
  for (std::size_t octets = 16; octets < 32; ++octets)
    EXPECT_EQ(verify(with_mac_octets(request, octets), keys).tsig_error, Rcode::kBadTrunc)
        << octets;
  for (const std::size_t octets : {0, 10, 15, 33})
    EXPECT_EQ(verify(with_mac_octets(request, octets), keys).rcode, Rcode::kFormErr) << octets;
  EXPECT_EQ(verify(request, keys).rcode, Rcode::kNoError);
}

TEST(TsigTruncation, AWholeMacOfAnAlgorithmThatCutsIsNotCut) {
  const TsigKeyring keys = vector_ring("hmac-sha256-128");
  EXPECT_EQ(verify(from_hex(vectors::kExchanges[6].request), keys).rcode, Rcode::kNoError);
}

/// The number of bits, and the exchange without one.
const std::pair<const char*, std::size_t> kCutAlgorithms[] = {
    {"hmac-sha256-128", 3}, {"hmac-sha384-192", 4}, {"hmac-sha512-256", 5}};

TEST(TsigTruncation, ARequestUnderACutKeyNamesTheWholeAlgorithmAndHasTheBeginningOfItsMac) {
  for (const auto& [algorithm, whole] : kCutAlgorithms) {
    const TsigRecord expected = tsig_of(from_hex(vectors::kExchanges[whole].request));
    const TsigKeyring keys = vector_ring(algorithm);
    Bytes request = without_tsig(from_hex(vectors::kExchanges[whole].request));
    TsigSession client = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
    ASSERT_TRUE(client.sign(request, kTime));
    const TsigRecord sent = tsig_of(request);
    EXPECT_EQ(sent.algorithm_name, expected.algorithm_name) << algorithm;
    EXPECT_EQ(sent.mac,
              Bytes(expected.mac.begin(),
                    expected.mac.begin() + static_cast<std::ptrdiff_t>(expected.mac.size() / 2)));
    EXPECT_EQ(verify(request, keys).tsig_error, Rcode::kNoError);
  }
}

TEST(TsigTruncation, ACutKeyTakesEitherNameAndAnswersUnderTheOneThatCame) {
  for (const auto& [algorithm, whole] : kCutAlgorithms) {
    const TsigKeyring keys = vector_ring(algorithm);
    for (const std::size_t which : {whole, whole + 3}) {
      const Bytes request = from_hex(vectors::kExchanges[which].request);
      const TsigVerdict verdict = verify(request, keys);
      EXPECT_EQ(verdict.tsig_error, Rcode::kNoError) << vectors::kExchanges[which].algorithm;
      Bytes response = bare_response();
      ASSERT_TRUE(TsigSession::for_response(verdict).sign(response, kTime));
      EXPECT_EQ(tsig_of(response).algorithm_name, tsig_of(request).algorithm_name);
      const TsigRecord cut = tsig_of(from_hex(vectors::kExchanges[whole + 3].request));
      EXPECT_EQ(tsig_of(response).mac.size(), cut.mac.size());
    }
  }
}

TEST(TsigTruncation, ACutKeyWantsAtLeastItsOctetsAndAtMostThoseOfTheName) {
  const TsigKeyring keys = vector_ring("hmac-sha256-128");
  const Bytes whole = from_hex(sha256_exchange().request);
  for (std::size_t octets = 0; octets <= 40; ++octets) {
    const bool allowed = octets >= 16 && octets <= 32;
    EXPECT_EQ(verify(with_mac_octets(whole, octets), keys).rcode,
              allowed ? Rcode::kNoError : Rcode::kFormErr)
        << octets;
  }
  const Bytes cut = from_hex(vectors::kExchanges[6].request);
  EXPECT_EQ(verify(with_mac_octets(cut, 15), keys).rcode, Rcode::kFormErr);
  EXPECT_EQ(verify(with_mac_octets(cut, 17), keys).rcode, Rcode::kFormErr);
}

TEST(TsigTruncation, AnAnswerToACutKeyMayBeWholeButHasTheNameOfTheRequest) {
  const TsigKeyring cut = vector_ring("hmac-sha256-128");
  SignedRequest request(cut);
  const TsigKeyring whole = vector_ring("hmac-sha256", 16);
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(request.message, whole)).sign(response, kTime));
  ASSERT_EQ(tsig_of(response).mac.size(), 32U);
  const Status verified = request.client.verify_response(response, kTime);
  EXPECT_TRUE(verified) << verified.error().text;

  TsigVerdict renamed = verify(request.message, cut);
  renamed.record.algorithm_name = name("hmac-sha256-128.");
  Bytes other = bare_response();
  ASSERT_TRUE(TsigSession::for_response(renamed).sign(other, kTime));
  SignedRequest again(cut);
  EXPECT_FALSE(again.client.verify_response(other, kTime));
}

TEST(TsigTruncation, AMacDownToHalfItsHashMayBeAllowedAndBelowThatIsAFormatError) {
  const TsigKeyring keys = vector_ring("hmac-sha256", 1);
  const Bytes request = from_hex(sha256_exchange().request);
  for (std::size_t octets = 0; octets <= 40; ++octets) {
    const TsigVerdict verdict = verify(with_mac_octets(request, octets), keys);
    const bool allowed = octets >= 16 && octets <= 32;
    EXPECT_EQ(verdict.rcode, allowed ? Rcode::kNoError : Rcode::kFormErr) << octets;
  }
}

TEST(TsigTruncation, TenOctetsAreTheLeastForShortHashes) {
  const TsigKeyring keys = vector_ring("hmac-md5", 1);
  const Bytes request = from_hex(vectors::kExchanges[0].request);
  EXPECT_EQ(verify(with_mac_octets(request, 9), keys).rcode, Rcode::kFormErr);
  EXPECT_EQ(verify(with_mac_octets(request, 10), keys).rcode, Rcode::kNoError);
}

TEST(TsigTruncation, LessThanTheKeysPolicyIsBadTruncAndAnsweredSigned) {
  TsigKey key = vector_key("hmac-sha256");
  key.least_mac_octets = 20;
  const TsigKeyring keys = ring_of(std::move(key));
  const Bytes request = from_hex(sha256_exchange().request);
  EXPECT_EQ(verify(with_mac_octets(request, 20), keys).rcode, Rcode::kNoError);
  const TsigVerdict verdict = verify(with_mac_octets(request, 19), keys);
  EXPECT_EQ(verdict.rcode, Rcode::kNotAuth);
  EXPECT_EQ(verdict.tsig_error, Rcode::kBadTrunc);
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verdict).sign(response, kTime));
  const TsigRecord record = tsig_of(response);
  EXPECT_EQ(record.mac.size(), 32U);
  EXPECT_EQ(record.error, 22);
}

TEST(TsigTruncation, ATruncatedRequestMacIsDigestedAsReceived) {
  const TsigKeyring keys = vector_ring("hmac-sha256", 20);
  const Bytes request = with_mac_octets(from_hex(sha256_exchange().request), 20);
  Bytes with_cut = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(request, keys)).sign(with_cut, kTime));
  Bytes with_whole = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(from_hex(sha256_exchange().request), keys))
                  .sign(with_whole, kTime));
  EXPECT_NE(tsig_of(with_cut).mac, tsig_of(with_whole).mac);
}

TEST(TsigErrorResponse, BadKeyAndBadSigCarryAnEmptyMac) {
  TsigKey key = vector_key("hmac-sha256");
  key.secret.back() ^= 1;
  const TsigKeyring wrong_secret = ring_of(std::move(key));
  const TsigKeyring no_keys;
  for (const auto* keys : {&wrong_secret, &no_keys}) {
    const TsigVerdict verdict = verify(from_hex(sha256_exchange().request), *keys);
    TsigSession session = TsigSession::for_response(verdict);
    Bytes response = bare_response();
    const std::size_t before = response.size();
    ASSERT_TRUE(session.sign(response, kTime));
    EXPECT_EQ(response.size() - before, session.overhead());
    const TsigRecord record = tsig_of(response);
    EXPECT_TRUE(record.mac.empty());
    EXPECT_EQ(record.error, static_cast<std::uint16_t>(verdict.tsig_error));
    EXPECT_EQ(to_text(record.key_name), vectors::kKeyName);
    EXPECT_EQ(record.original_id, 99);
  }
}

TEST(TsigErrorResponse, AFormatErrorCarriesNoTsig) {
  const TsigKeyring keys = vector_ring();
  const TsigVerdict verdict = verify(with_mac_octets(from_hex(sha256_exchange().request), 3), keys);
  TsigSession session = TsigSession::for_response(verdict);
  EXPECT_EQ(session.overhead(), 0U);
  Bytes response = bare_response();
  ASSERT_TRUE(session.sign(response, kTime));
  EXPECT_EQ(response, bare_response());
}

TEST(TsigErrorResponse, TheClientSaysWhatTheServerRefused) {
  const TsigKeyring client_keys = vector_ring();
  SignedRequest request(client_keys);
  const TsigKeyring no_keys;
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(request.message, no_keys)).sign(response, kTime));
  const Status refused = request.client.verify_response(response, kTime);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("BADKEY"));
}

TEST(TsigKeyring, AKeyIsTakenOnceAndOnlyWithASecret) {
  TsigKeyring ring;
  TsigKey key{*Name::from_text("Key.Test."), TsigAlgorithm::kSha256, {}};
  const Status empty = ring.add(key);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().text, HasSubstr("no secret"));
  EXPECT_EQ(ring.find(key.name), nullptr);
  key.secret = Bytes(32, 1);
  EXPECT_TRUE(ring.add(key));
  key.name = *Name::from_text("key.TEST.");
  const Status twice = ring.add(key);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Errc::kExists);
}

TEST(TsigErrorResponse, AnEmptyMacWithoutAnErrorProvesNothing) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  Bytes response = from_hex(sha256_exchange().answer);
  EXPECT_FALSE(request.client.verify_response(with_mac_octets(response, 0), kTime));
}

TEST(TsigResponse, SignedInPlaceEqualsSignedInAVector) {
  const TsigKeyring keys = vector_ring();
  const TsigVerdict verdict = verify(from_hex(sha256_exchange().request), keys);
  Bytes in_vector = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verdict).sign(in_vector, kTime));
  TsigSession session = TsigSession::for_response(verdict);
  Bytes space = bare_response();
  const std::size_t size = space.size();
  space.resize(size + session.overhead());
  const auto end = session.sign(std::span(space), size, kTime);
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, space.size());
  EXPECT_EQ(space, in_vector);
}

TEST(TsigResponse, SpaceOneOctetTooSmallIsFullAndLeavesTheMessage) {
  const TsigKeyring keys = vector_ring();
  TsigSession session =
      TsigSession::for_response(verify(from_hex(sha256_exchange().request), keys));
  Bytes space = bare_response();
  const std::size_t size = space.size();
  space.resize(size + session.overhead() - 1);
  const Bytes before = space;
  const auto end = session.sign(std::span(space), size, kTime);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Errc::kFull);
  EXPECT_EQ(space, before);
}

TEST(TsigResponse, AMessageThatWouldPass65535OctetsIsFull) {
  const TsigKeyring keys = vector_ring();
  TsigSession session =
      TsigSession::for_response(verify(from_hex(sha256_exchange().request), keys));
  Bytes message(65535 - session.overhead() + 1);
  EXPECT_FALSE(session.sign(message, kTime));
  EXPECT_EQ(message.size(), 65535 - session.overhead() + 1);
  message.pop_back();
  EXPECT_TRUE(session.sign(message, kTime));
  EXPECT_EQ(message.size(), 65535U);
}

TEST(TsigResponse, AnswersToAnotherRequestDoNotVerify) {
  const TsigKeyring keys = vector_ring();
  SignedRequest first(keys);
  TsigSession other = TsigSession::for_request(*keys.find(name(vectors::kKeyName)));
  Bytes other_request = bare_query();
  ASSERT_TRUE(other.sign(other_request, kTime + 1));
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(first.message, keys)).sign(response, kTime));
  EXPECT_FALSE(other.verify_response(response, kTime));
  EXPECT_TRUE(first.client.verify_response(response, kTime));
}

TEST(TsigResponse, ASignedAnswerFromAnotherTimeIsBadTime) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(request.message, keys)).sign(response, kTime));
  const Status late = request.client.verify_response(response, kTime + 301);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().text, HasSubstr("BADTIME"));
}

TEST(TsigResponse, ARequestMayBeSignedAgainForAnotherTry) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  Bytes again = bare_query();
  ASSERT_TRUE(request.client.sign(again, kTime + 400));
  const TsigVerdict verdict = verify(again, keys, kTime + 400);
  EXPECT_EQ(verdict.rcode, Rcode::kNoError);
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verdict).sign(response, kTime + 400));
  EXPECT_TRUE(request.client.verify_response(response, kTime + 400));
}

TEST(TsigStream, EachMessageOfOurStreamVerifiesAndNoneInAnotherPlace) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  TsigSession server = TsigSession::for_response(verify(request.message, keys));
  std::vector<Bytes> messages(4, bare_response());
  for (Bytes& message : messages) ASSERT_TRUE(server.sign(message, kTime));
  EXPECT_TRUE(request.client.verify_response(messages[0], kTime));
  EXPECT_FALSE(request.client.verify_response(messages[2], kTime));
  EXPECT_TRUE(request.client.verify_response(messages[1], kTime));
  EXPECT_FALSE(request.client.verify_response(messages[1], kTime));
  EXPECT_TRUE(request.client.verify_response(messages[2], kTime));
  EXPECT_TRUE(request.client.verify_response(messages[3], kTime));
  EXPECT_TRUE(request.client.finish());
}

TEST(TsigStream, NinetyNineUnsignedMessagesAreAcceptedAndNotOneMore) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  Bytes first = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(request.message, keys)).sign(first, kTime));
  ASSERT_TRUE(request.client.verify_response(first, kTime));
  for (int i = 0; i < 99; ++i) ASSERT_TRUE(request.client.verify_response(bare_response(), kTime));
  EXPECT_FALSE(request.client.verify_response(bare_response(), kTime));
  EXPECT_FALSE(request.client.finish());
}

TEST(TsigStream, AnUnsignedResponseIsRefused) {
  const TsigKeyring keys = vector_ring();
  SignedRequest request(keys);
  EXPECT_FALSE(request.client.verify_response(bare_response(), kTime));
}

TEST(TsigStream, AnotherKeysSignatureIsRefused) {
  TsigKeyring keys = vector_ring();
  TsigKey other = vector_key("hmac-sha256");
  other.name = name("other.example.");
  ASSERT_TRUE(keys.add(other));
  SignedRequest request(keys);
  TsigSession other_client = TsigSession::for_request(*keys.find(other.name));
  Bytes other_request = bare_query();
  ASSERT_TRUE(other_client.sign(other_request, kTime));
  Bytes response = bare_response();
  ASSERT_TRUE(TsigSession::for_response(verify(other_request, keys)).sign(response, kTime));
  EXPECT_FALSE(request.client.verify_response(response, kTime));
}

/// A query with records of given types in its additional section, all empty but for TSIG.
Bytes with_additional(std::initializer_list<RRType> types, const Bytes& tsig_rdata) {
  Bytes message = bare_query();
  message[11] = static_cast<std::uint8_t>(types.size());
  for (const RRType type : types) {
    message.push_back(0);
    append_be16(message, static_cast<std::uint16_t>(type));
    append_be16(message, static_cast<std::uint16_t>(RRClass::kANY));
    append_be32(message, 0);
    const bool tsig = type == RRType::kTSIG;
    append_be16(message, static_cast<std::uint16_t>(tsig ? tsig_rdata.size() : 0));
    if (tsig) append(message, tsig_rdata);
  }
  return message;
}

/// Algorithm ".", everything else 0.
Bytes plain_tsig_rdata() { return Bytes(17, 0); }

TEST(FindTsig, AMessageWithoutOneHasNone) {
  const auto found = find_tsig(bare_query());
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

TEST(FindTsig, OnlyTheLastRecordMayBeTsig) {
  const Bytes rdata = plain_tsig_rdata();
  EXPECT_TRUE(*find_tsig(with_additional({RRType::kA, RRType::kTSIG}, rdata)));
  EXPECT_FALSE(find_tsig(with_additional({RRType::kTSIG, RRType::kA}, rdata)));
  EXPECT_FALSE(find_tsig(with_additional({RRType::kTSIG, RRType::kTSIG}, rdata)));
}

TEST(FindTsig, ItMustBeInTheAdditionalSection) {
  Bytes message = with_additional({RRType::kTSIG}, plain_tsig_rdata());
  std::swap(message[7], message[11]);  // ANCOUNT and ARCOUNT
  EXPECT_FALSE(find_tsig(message));
}

TEST(FindTsig, OctetsBehindItAreAnError) {
  Bytes message = with_additional({RRType::kTSIG}, plain_tsig_rdata());
  message.push_back(0);
  EXPECT_FALSE(find_tsig(message));
}

TEST(FindTsig, ClassAndTtlHaveOneValueEach) {
  const Bytes message = with_additional({RRType::kTSIG}, plain_tsig_rdata());
  const std::size_t fixed = message.size() - plain_tsig_rdata().size() - 10;
  for (const std::size_t at : {fixed + 3, fixed + 4, fixed + 7}) {
    Bytes changed = message;
    changed[at] ^= 1;
    EXPECT_FALSE(find_tsig(changed)) << at;
  }
}

TEST(FindTsig, RdataOfEachShorterOrLongerLengthIsMalformed) {
  for (std::size_t size = 0; size < 40; ++size) {
    const auto found = find_tsig(with_additional({RRType::kTSIG}, Bytes(size, 0)));
    EXPECT_EQ(static_cast<bool>(found), size == 17) << size;
  }
}

TEST(FindTsig, EveryTruncationOfASignedMessageIsAnErrorOrUnsigned) {
  const Bytes request = from_hex(sha256_exchange().request);
  for (std::size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(find_tsig(ByteView(request).first(size))) << size;
}

TEST(TsigAlgorithms, TheirNamesReadInAnyCaseAndWithAFinalDot) {
  EXPECT_EQ(*tsig_algorithm_from_text("HMAC-sha256."), TsigAlgorithm::kSha256);
  EXPECT_EQ(*tsig_algorithm_from_text("hmac-md5"), TsigAlgorithm::kMd5);
  EXPECT_EQ(*tsig_algorithm_from_text("HMAC-MD5.SIG-ALG.REG.INT"), TsigAlgorithm::kMd5);
  EXPECT_EQ(to_text(TsigAlgorithm::kSha512_256), "hmac-sha512-256");
  for (const char* text : {"", ".", "sha256", "hmac-sha3", "hmac-sha256.."})
    EXPECT_FALSE(tsig_algorithm_from_text(text)) << text;
}

TEST(TsigKeyring, FindsItsKeysByNameInAnyCase) {
  TsigKeyring keys;
  for (int i = 0; i < 500; ++i) {
    TsigKey key = vector_key("hmac-sha256");
    key.name = name("Key" + std::to_string(i) + ".example.");
    ASSERT_TRUE(keys.add(std::move(key)));
  }
  const auto* key = keys.find(name("kEy77.EXAMPLE."));
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key, keys.find(name("key77.example.")));
  EXPECT_NE(key, keys.find(name("key78.example.")));
  EXPECT_EQ(keys.find(name("key500.example.")), nullptr);
}

TEST(TsigKeyring, ASecondKeyOfANameIsRefusedAndSoIsOneWithoutASecret) {
  TsigKeyring keys = vector_ring();
  const Status twice = keys.add(vector_key("hmac-sha1"));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Errc::kExists);
  EXPECT_FALSE(keys.add({name("empty."), TsigAlgorithm::kSha256, {}, 0}));
  EXPECT_EQ(keys.find(name("empty.")), nullptr);
}

}  // namespace tsig_test
}  // namespace pando::dns
