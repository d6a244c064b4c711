#include "dns/dnssec/pkcs8.h"

#include <algorithm>
#include <array>

namespace pando::dns {

namespace {

enum class DerTag : std::uint8_t {
  kInteger = 0x02,
  kOctetString = 0x04,
  kOid = 0x06,
  kSequence = 0x30,
};

/// Values of DER (X.690 §8, §10.1), one after the other. After a wrong one all others are wrong.
class DerReader {
 public:
  explicit DerReader(ByteView octets) noexcept : rest_(octets) {}

  /// The content of the next value, which must have this tag; empty for a wrong one.
  ByteView take(DerTag tag) noexcept {
    std::size_t length = 0, header = 2;
    if (failed_ || rest_.size() < header || rest_[0] != static_cast<std::uint8_t>(tag))
      return fail();
    length = rest_[1];
    if (length >= 0x80) {
      const std::size_t octets = length & 0x7FU;
      header += octets;
      if (octets == 0 || octets > 2 || rest_.size() < header) return fail();  // up to 64 KiB
      length = 0;
      for (std::size_t i = 0; i < octets; ++i) length = length << 8U | rest_[2 + i];
    }
    if (rest_.size() - header < length) return fail();
    const ByteView content = rest_.subspan(header, length);
    rest_ = rest_.subspan(header + length);
    return content;
  }
  /// A number that is not negative, without the octet that shows its sign.
  ByteView take_number() noexcept {
    ByteView number = take(DerTag::kInteger);
    if (number.empty() || (number[0] & 0x80U) != 0) return fail();
    if (number.size() > 1 && number[0] == 0) number = number.subspan(1);
    return number;
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  ByteView fail() noexcept {
    failed_ = true;
    return {};
  }
  ByteView rest_;
  bool failed_ = false;
};

constexpr std::uint8_t kRsaEncryption[] = {0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01};
constexpr std::uint8_t kEcPublicKey[] = {0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01};
constexpr std::uint8_t kP256[] = {0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07};
constexpr std::uint8_t kP384[] = {0x2B, 0x81, 0x04, 0x00, 0x22};
constexpr std::uint8_t kEd25519[] = {0x2B, 0x65, 0x70};
constexpr std::uint8_t kEd448[] = {0x2B, 0x65, 0x71};
constexpr std::uint8_t kRsaSha256 = 8;  // RSA has several: see parse_pkcs8()

bool same_oid(ByteView a, ByteView b) noexcept { return std::ranges::equal(a, b); }

/// The DNSSEC algorithm of an AlgorithmIdentifier; 0: another kind of key.
std::uint8_t algorithm_of(ByteView identifier) noexcept {
  DerReader reader(identifier);
  const ByteView kind = reader.take(DerTag::kOid);
  if (same_oid(kind, kRsaEncryption)) return kRsaSha256;
  if (same_oid(kind, kEd25519)) return 15;
  if (same_oid(kind, kEd448)) return 16;
  if (!same_oid(kind, kEcPublicKey)) return 0;
  const ByteView curve = reader.take(DerTag::kOid);
  return same_oid(curve, kP256) ? 13 : same_oid(curve, kP384) ? 14 : 0;
}

Bytes owned(ByteView octets) { return {octets.begin(), octets.end()}; }

bool read_rsa(ByteView der, PrivateNumbers& numbers) {
  DerReader outer(der);
  DerReader reader(outer.take(DerTag::kSequence));
  const ByteView version = reader.take_number();
  for (Bytes* number :
       {&numbers.modulus, &numbers.public_exponent, &numbers.private_exponent, &numbers.prime1,
        &numbers.prime2, &numbers.exponent1, &numbers.exponent2, &numbers.coefficient})
    *number = owned(reader.take_number());
  // Version 1 has more than two primes.
  return !reader.failed() && reader.at_end() && version.size() == 1 && version[0] == 0;
}

bool read_curve(ByteView der, PrivateNumbers& numbers) {
  DerReader outer(der);
  DerReader reader(outer.take(DerTag::kSequence));
  const ByteView version = reader.take_number();
  numbers.secret = owned(reader.take(DerTag::kOctetString));
  return !reader.failed() && version.size() == 1 && version[0] == 1;
}

bool read_eddsa(ByteView der, PrivateNumbers& numbers) {
  DerReader reader(der);
  numbers.secret = owned(reader.take(DerTag::kOctetString));
  return !reader.failed() && reader.at_end();
}

}  // namespace

Result<PrivateNumbers> parse_pkcs8(ByteView der) {
  DerReader outer(der);
  DerReader reader(outer.take(DerTag::kSequence));
  reader.take_number();  // 0, or 1 with the public key behind the private one (RFC 5958 §2)
  const ByteView identifier = reader.take(DerTag::kSequence);
  const ByteView key = reader.take(DerTag::kOctetString);
  if (reader.failed() || !outer.at_end()) return fail(Errc::kInvalid, "not a PKCS #8 structure");
  PrivateNumbers numbers;
  numbers.algorithm = algorithm_of(identifier);
  bool is_read = false;
  switch (numbers.algorithm) {
    case 0:
      return fail(Errc::kUnsupported, "a key of another kind than RSA, P-256, P-384 or EdDSA");
    case kRsaSha256:
      is_read = read_rsa(key, numbers);
      break;
    case 13:
    case 14:
      is_read = read_curve(key, numbers);
      break;
    default:
      is_read = read_eddsa(key, numbers);
  }
  if (!is_read) return fail(Errc::kInvalid, "the key in the PKCS #8 structure is malformed");
  return numbers;
}

}  // namespace pando::dns
