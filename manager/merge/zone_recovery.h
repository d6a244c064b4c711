#pragma once

#include <optional>
#include <vector>

#include "manager/journal/record/dynamic_changes.h"
#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

/// Rebuilds a zone whose served version is lost (the host was restarted): the present file, merged
/// with the dynamic changes. The rules and the result are those of file_merge.h. An edit has the
/// same effect whether it was made while serving or while the host was down.
///
/// The caller offers the file's records one by one. Records of sets without updates stay with the
/// caller, so that a large zone needs no second copy.
class ZoneRecovery {
 public:
  /// `updates` are the dynamic changes: for each record, its TTL in the merge base and in the
  /// served zone.
  explicit ZoneRecovery(DynamicChanges::Entries updates) : updates_(std::move(updates)) {}

  /// Offers a record of the file. True: the record is kept here, and result() decides about it.
  bool take(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);

  struct Outcome {
    std::vector<zone::Record> records;  ///< records to serve, from the sets kept here
    std::optional<zone::Record> soa;    ///< with the file's serial; nullopt when the file has none
    DynamicChanges dynamic_changes;     ///< the zone's dynamic changes over this file
  };
  /// Called after the file's last record.
  Outcome result() &&;

 private:
  using Updates =
      std::pair<DynamicChanges::Entries::const_iterator, DynamicChanges::Entries::const_iterator>;
  void recover_set(const Updates& set);
  void recover_signers_set(const Updates& set);
  void recover_soa(const Updates& set);
  void serve_others(const Updates& set, std::optional<dns::Ttl> updated);
  [[nodiscard]] std::optional<dns::Ttl> ttl_in_file(const RecordKey& key) const;
  void serve(const RecordKey& key, std::optional<dns::Ttl> file, std::optional<dns::Ttl> live);

  DynamicChanges::Entries updates_;
  // the file's records of sets that updates touched
  std::map<RecordKey, dns::Ttl, RecordKeyLess> held_;
  std::optional<zone::Record> soa_;  // the file's
  DynamicChanges::Entries changes_;
  Outcome outcome_;
};

/// Facts that decide the serial of a recovered zone.
struct RecoveredZone {
  bool as_file = false;     ///< the zone equals the file
  bool signed_soa = false;  ///< the SOA's signature covers one serial only
};

/// Serial of a recovered zone. If the file is still the merge base, the last served serial stays.
/// Otherwise the serial is newer for secondaries (RFC 1982): ahead of the last one. The serial is
/// also ahead of the file's if the zone differs from the file. A signed SOA takes the file's serial
/// if that is ahead, else the last one, because the SOA cannot be signed anew here. `state` has
/// records.
[[nodiscard]] dns::Serial recovered_serial(const MergeBase& state, dns::Serial file_serial,
                                           const zone::ZoneFileInfo& source, RecoveredZone zone);

}  // namespace pando::manager
