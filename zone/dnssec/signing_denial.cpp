#include "zone/dnssec/signing_denial.h"

#include <algorithm>
#include <array>

#include "dns/dnssec/denial_fields.h"

namespace pando::zone {

namespace {

constexpr std::uint8_t kSha1 = 1;                  // RFC 5155 §11
constexpr std::uint8_t kOptOutFlag = 1;            // RFC 5155 §3.1.2.1
constexpr std::size_t kOwnerLabelOctets = 1 + 32;  // base32hex of 20 octets

Bytes parameters(const SigningDenial& denial, std::uint8_t flags) {
  Bytes rdata{kSha1, flags};
  append_be16(rdata, denial.iterations);
  rdata.push_back(static_cast<std::uint8_t>(denial.salt.size()));
  append(rdata, denial.salt);
  return rdata;
}

}  // namespace

Bytes nsec3param_rdata(const SigningDenial& denial) {
  return parameters(denial, 0);  // RFC 5155 §4.1.2: flags are zero, with opt-out, too
}

Bytes nsec3_rdata(const SigningDenial& denial, const dns::Nsec3Hash& next, ByteView type_bitmap) {
  Bytes rdata = parameters(denial, denial.is_opt_out ? kOptOutFlag : 0);
  rdata.push_back(dns::kNsec3HashOctets);
  append(rdata, next);
  append(rdata, type_bitmap);
  return rdata;
}

dns::Name nsec3_owner(const dns::Nsec3Hash& hash, dns::NameView apex) {
  // Base32hex in lower case (RFC 5155 §1.3): each five octets are eight digits. No heap, as each
  // name of a zone has its owner made twice.
  static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuv";
  std::array<std::uint8_t, kOwnerLabelOctets> label{kOwnerLabelOctets - 1};
  for (std::size_t i = 0; i < kOwnerLabelOctets - 1; ++i) {
    const std::size_t bit = i * 5;
    const unsigned next = bit / 8 + 1 < hash.size() ? hash[bit / 8 + 1] : 0U;
    const unsigned window = unsigned{hash[bit / 8]} << 8U | next;
    label[1 + i] = static_cast<std::uint8_t>(kDigits[window >> (11 - bit % 8) & 31U]);
  }
  return *dns::Name::join(label, apex);
}

bool can_have_nsec3(dns::NameView apex) noexcept {
  return apex.size() + kOwnerLabelOctets <= dns::kMaxNameOctets;
}

bool is_denied_by(const ZoneView& zone, const SigningDenial& denial) {
  if (!denial.is_nsec3) return zone.denial() == Denial::kNsec;
  if (zone.denial() != Denial::kNsec3) return false;
  const RRsetView parameters = zone.apex_record().find(dns::RRType::kNSEC3PARAM);
  if (parameters.count() != 1 ||
      !std::ranges::equal(parameters.first_rdata(), nsec3param_rdata(denial)))
    return false;
  // NSEC3PARAM does not tell of opt-out. Whole signing gives the flag to all records or to none.
  dns::Nsec3Hash hash{};
  if (!dns::Nsec3Hasher().hash(zone.apex(), denial.iterations, denial.salt, hash)) return false;
  const RecordView apex = zone.nsec3_at(hash);
  const auto fields =
      apex ? dns::parse_nsec3(apex.find(dns::RRType::kNSEC3).first_rdata()) : std::nullopt;
  return fields && fields->is_opt_out() == denial.is_opt_out;
}

}  // namespace pando::zone
