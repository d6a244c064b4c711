#include <algorithm>
#include <unordered_map>

#include "dns/tsig/tsig_mac.h"

namespace pando::dns {

struct TsigKeyring::Impl {
  std::unordered_multimap<std::uint64_t, std::unique_ptr<PreparedKey>> by_hash;  // of the name
};

TsigKeyring::TsigKeyring() : impl_(std::make_unique<Impl>()) {}
TsigKeyring::~TsigKeyring() = default;
TsigKeyring::TsigKeyring(TsigKeyring&&) noexcept = default;
TsigKeyring& TsigKeyring::operator=(TsigKeyring&&) noexcept = default;

Status TsigKeyring::add(TsigKey key) {
  if (find(key.name) != nullptr)
    return fail(Errc::kExists, "TSIG key '{}' is given twice", to_text(key.name));
  if (key.secret.empty())
    return fail(Errc::kInvalid, "TSIG key '{}' has no secret", to_text(key.name));
  const TsigAlgorithmRow& row = tsig_algorithm_row(key.algorithm);
  auto prepared = std::make_unique<PreparedKey>();
  prepared->name = key.name.folded();
  prepared->algorithm = *Name::from_text(row.wire_text);
  if (row.mac_octets < row.hash_octets) prepared->cut_alias = *Name::from_text(row.text);
  prepared->hash_octets = row.hash_octets;
  prepared->mac_octets = row.mac_octets;
  prepared->shortest_mac = std::max<std::size_t>(10, row.hash_octets / 2);
  prepared->least_mac_octets = key.least_mac_octets == 0
                                   ? row.mac_octets
                                   : std::min<std::size_t>(key.least_mac_octets, row.mac_octets);
  prepared->keyed = HmacContext(row.digest, key.secret);
  if (!prepared->keyed)
    return fail(Errc::kUnsupported, "OpenSSL does not offer {} for TSIG key '{}'", row.text,
                to_text(key.name));
  impl_->by_hash.emplace(hash_name(key.name), std::move(prepared));
  return {};
}

const Name* TsigKeyring::PreparedKey::algorithm_named(NameView received) const noexcept {
  if (received == algorithm) return &algorithm;
  return cut_alias && received == *cut_alias ? &*cut_alias : nullptr;
}

std::size_t TsigKeyring::PreparedKey::longest_mac(const Name& algorithm_name) const noexcept {
  return &algorithm_name == &algorithm ? hash_octets : mac_octets;
}

const TsigKeyring::PreparedKey* TsigKeyring::find(NameView name) const noexcept {
  const auto [first, last] = impl_->by_hash.equal_range(hash_name(name));
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second->name == name; });
  return found == last ? nullptr : found->second.get();
}

}  // namespace pando::dns
