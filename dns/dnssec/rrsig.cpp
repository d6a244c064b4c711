#include "dns/dnssec/rrsig.h"

#include "dns/rdata/rdata.h"

namespace pando::dns {

namespace {

constexpr std::size_t kFixedOctets = 18;  // RFC 4034 §3.1: all before the signer's name

}  // namespace

bool RrsigFields::is_valid_at(std::uint64_t seconds) const noexcept {
  const Serial now{static_cast<std::uint32_t>(seconds)};
  return !Serial{inception}.ahead_of(now) && !now.ahead_of(Serial{expiration}) &&
         !Serial{inception}.ahead_of(Serial{expiration});
}

std::optional<RrsigFields> parse_rrsig(ByteView rdata) noexcept {
  if (rdata.size() <= kFixedOctets) return std::nullopt;
  const std::size_t signer = wire_name_length(rdata.subspan(kFixedOctets));
  if (signer == 0) return std::nullopt;
  const std::uint8_t* p = rdata.data();
  RrsigFields fields;
  fields.covered = static_cast<RRType>(load_be16(p));
  fields.algorithm = p[2];
  fields.labels = p[3];
  fields.original_ttl = load_be32(p + 4);
  fields.expiration = load_be32(p + 8);
  fields.inception = load_be32(p + 12);
  fields.key_tag = load_be16(p + 16);
  fields.signer = NameView(p + kFixedOctets, signer);
  fields.signature = rdata.subspan(kFixedOctets + signer);
  fields.before_signer = rdata.first(kFixedOctets);
  return fields;
}

std::uint8_t rrsig_labels(NameView owner) noexcept {
  return static_cast<std::uint8_t>(owner.label_count() - (owner.is_wildcard() ? 1U : 0U));
}

Bytes signed_octets(const RrsigFields& rrsig, NameView owner, std::span<const Bytes> rdatas) {
  Bytes out;
  append_signed_octets(rrsig, owner, rdatas, out);
  return out;
}

void append_signed_octets(const RrsigFields& rrsig, NameView owner, std::span<const Bytes> rdatas,
                          Bytes& out) {
  append(out, rrsig.before_signer);
  append(out, Name(rrsig.signer).folded().view().bytes());
  const Name folded = Name(owner).folded();
  for (const Bytes& rdata : rdatas) {
    append(out, folded.view().bytes());
    append_be16(out, static_cast<std::uint16_t>(rrsig.covered));
    append_be16(out, static_cast<std::uint16_t>(RRClass::kIN));
    append_be32(out, rrsig.original_ttl);
    append_be16(out, static_cast<std::uint16_t>(rdata.size()));
    append_rdata_canonical(rrsig.covered, rdata, out);
  }
}

}  // namespace pando::dns
