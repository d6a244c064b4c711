#pragma once

#include <map>
#include <optional>

#include "dns/name.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The identity of a record: owner, type and RDATA, compared in canonical form. The TTL belongs to
/// the set (RFC 2181 §5.2) and is left out, as is a SOA's serial, which tells nothing about the
/// data. One allocation per key, so that a million keys cost little.
class RecordKey {
 public:
  RecordKey(dns::NameView owner, dns::RRType type, ByteView rdata);
  [[nodiscard]] dns::NameView owner() const noexcept { return {bytes_.data(), owner_octets_}; }
  [[nodiscard]] dns::RRType type() const noexcept { return type_; }
  [[nodiscard]] ByteView rdata() const noexcept { return ByteView(bytes_).subspan(owner_octets_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool same_set(const RecordKey& other) const noexcept {
    return type_ == other.type_ && owner() == other.owner();
  }
  [[nodiscard]] zone::Record record(dns::Ttl ttl) const;

 private:
  Bytes bytes_;  // owner, then RDATA
  std::uint16_t owner_octets_;
  dns::RRType type_;
};

[[nodiscard]] bool operator==(const RecordKey& a, const RecordKey& b) noexcept;

/// A lookup key for all records of one set.
struct SetKey {
  dns::NameView owner;
  dns::RRType type{};
};

/// Owners in canonical order, then types, then RDATA: the records of a set stand together.
struct RecordKeyLess {
  using is_transparent = void;
  bool operator()(const RecordKey& a, const RecordKey& b) const noexcept;
  bool operator()(const RecordKey& a, const SetKey& b) const noexcept;
  bool operator()(const SetKey& a, const RecordKey& b) const noexcept;
};

/// The change of one record: its TTL before and after, nullopt where the record was absent.
struct RecordChange {
  std::optional<dns::Ttl> before;
  std::optional<dns::Ttl> after;
  bool operator==(const RecordChange&) const = default;
};
using RecordChanges = std::map<RecordKey, RecordChange, RecordKeyLess>;

/// A changeset record by record. Records removed and added again unchanged are left out, as is a
/// SOA whose serial alone differs. An rvalue changeset is freed record by record on the way.
RecordChanges record_changes_of(const zone::Changeset& changes);
RecordChanges record_changes_of(zone::Changeset&& changes);
/// Adds one of them to a changeset.
void append_change(const RecordKey& key, const RecordChange& change, zone::Changeset& out);
/// The inverse: a changeset of the same meaning.
zone::Changeset changeset_of(const dns::Name& zone, const RecordChanges& by_record);
zone::Changeset changeset_of(const dns::Name& zone, RecordChanges&& by_record);

}  // namespace pando::manager
