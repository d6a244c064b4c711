#include "zone/dnssec/set_signer.h"

#include <fmt/format.h>

#include <algorithm>

#include "dns/dnssec/rrsig.h"
#include "dns/rdata/rdata.h"

namespace pando::zone {

using dns::RRType;

bool is_key_set(RRType type) noexcept {
  return type == RRType::kDNSKEY || type == RRType::kCDS || type == RRType::kCDNSKEY;
}

std::uint64_t SignatureTimes::end_of(dns::NameView owner, RRType type) const noexcept {
  if (spread == 0) return expiration;
  // Spread by a multiplication, as the hash of a short name differs in few bits (Knuth 6.4).
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  const std::uint64_t mixed =
      (dns::hash_name(owner) + static_cast<std::uint64_t>(type) * kGolden) * kGolden;
  return expiration - (mixed >> 32U) % spread;
}

std::vector<KeyUse> usual_uses(std::span<const KeyKind> keys) {
  const auto has_key = [keys](std::uint8_t algorithm, bool is_sep) {
    return std::ranges::any_of(keys, [&](const KeyKind& key) {
      return key.algorithm == algorithm && key.is_sep == is_sep;
    });
  };
  std::vector<KeyUse> uses;
  uses.reserve(keys.size());
  for (const KeyKind& key : keys) {
    const bool signs_keys = key.is_sep || !has_key(key.algorithm, true);
    const bool signs_data = !key.is_sep || !has_key(key.algorithm, false);
    uses.push_back({true, signs_keys, signs_data, signs_keys});
  }
  return uses;
}

Result<SigningKeys> SigningKeys::make(std::vector<dns::SigningKey> keys) {
  if (keys.empty()) return fail(Errc::kInvalid, "no key");
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      // The flags are no part of the key: with both kinds it would sign all sets twice.
      if (std::ranges::equal(ByteView(keys[i].dnskey()).subspan(2),
                             ByteView(keys[j].dnskey()).subspan(2)))
        return fail(Errc::kInvalid, "key {} is given twice", keys[i].tag());
  std::vector<KeyKind> kinds;
  for (const dns::SigningKey& key : keys) kinds.push_back({key.algorithm(), key.is_sep()});
  std::vector<KeyUse> uses = usual_uses(kinds);
  return SigningKeys(std::move(keys), std::move(uses), false);
}

const KeyUse& SigningKeys::use_of(const dns::SigningKey& key) const noexcept {
  static constexpr KeyUse kNone;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i].dnskey() == key.dnskey()) return uses_[i];
  return kNone;
}

Result<SetSigner> SetSigner::make(dns::NameView apex, const SigningKeys& keys,
                                  const SignatureTimes& times) {
  SetSigner signer(apex, times);
  for (const dns::SigningKey& key : keys.all()) {
    const KeyUse& use = keys.use_of(key);
    if (!use.signs_keys && !use.signs_data) continue;
    auto maker = dns::SignatureMaker::make(key);
    if (!maker) return pass(maker);
    signer.signers_.push_back({std::move(*maker), key.algorithm(), key.tag(),
                               use.signs_keys, use.signs_data});
  }
  return signer;
}

/// The fields of RFC 4034 §3.1 in wire form; those of the key are still empty.
void SetSigner::begin(dns::NameView owner, RRType type, dns::Ttl ttl, std::vector<Bytes>& rdatas) {
  // RFC 4034 §6.3
  const auto before = [type](const Bytes& a, const Bytes& b) {
    return dns::compare_rdata_canonical(type, a, b) < 0;
  };
  if (!std::is_sorted(rdatas.begin(), rdatas.end(), before))
    std::sort(rdatas.begin(), rdatas.end(), before);
  type_ = type;
  rrsig_.clear();
  append_be16(rrsig_, static_cast<std::uint16_t>(type));
  rrsig_.push_back(0);
  rrsig_.push_back(dns::rrsig_labels(owner));
  append_be32(rrsig_, ttl.seconds);
  // RFC 4034 §3.1.5: modulo 2^32
  append_be32(rrsig_, static_cast<std::uint32_t>(times_.end_of(owner, type)));
  append_be32(rrsig_, static_cast<std::uint32_t>(times_.inception));
  append_be16(rrsig_, 0);
  append(rrsig_, apex_.view().bytes());
}

bool SetSigner::make_rrsig(Signer& signer, dns::NameView owner, std::span<const Bytes> rdatas) {
  constexpr std::size_t kAlgorithmAt = 2, kTagAt = 16, kFixedOctets = 18;
  rrsig_[kAlgorithmAt] = signer.algorithm;
  store_be16(rrsig_.data() + kTagAt, signer.tag);
  rrsig_.resize(kFixedOctets + apex_.size());
  dns::RrsigFields fields;
  fields.covered = type_;
  fields.original_ttl = load_be32(rrsig_.data() + 4);
  fields.signer = dns::NameView(rrsig_.data() + kFixedOctets, apex_.size());
  fields.before_signer = ByteView(rrsig_).first(kFixedOctets);
  octets_.clear();
  dns::append_signed_octets(fields, owner, rdatas, octets_);
  return signer.maker.sign(octets_, rrsig_);
}

}  // namespace pando::zone
