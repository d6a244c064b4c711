#pragma once

#include <optional>
#include <vector>

#include "manager/journal/dynamic_changes.h"
#include "manager/journal/journal_payload.h"

namespace pando::manager {

/// A zone whose live version is lost (the host was restarted): its file as it is now, changed by
/// what came by update. The rules are those of file_merge.h, and so is the outcome: whether a file
/// was edited while the zone was being served or while the host was down makes no difference.
///
/// The file's records are offered one by one; those of sets that no update touched stay with the
/// caller, so that a large zone costs no second copy.
class ZoneRecovery {
 public:
  /// `updates`: for each record that updates touched, its TTL in the file that they were beside and
  /// in the zone as it was served.
  explicit ZoneRecovery(DynamicChanges::Entries updates) : updates_(std::move(updates)) {}

  /// A record of the file. True: kept here, result() has what becomes of it.
  bool take(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);

  struct Outcome {
    std::vector<zone::Record> records;  ///< of the sets kept here, as they are to be served
    std::optional<zone::Record> soa;    ///< with the file's serial; nullopt when the file has none
    DynamicChanges overlay;             ///< of the zone over this file
  };
  /// After the file's last record.
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
  std::map<RecordKey, dns::Ttl, RecordKeyLess> held_;  // the file's records of those sets
  std::optional<zone::Record> soa_;                    // the file's
  DynamicChanges::Entries overlay_;
  Outcome outcome_;
};

/// What the serial of a recovered zone depends on.
struct RecoveredZone {
  bool as_file = false;     ///< it is what the file says
  bool signed_soa = false;  ///< its SOA has a signature, which is of one serial
};

/// The serial that goes with it: the last one served when the file is as it was merged last, else
/// one that secondaries take for newer (RFC 1982): ahead of the last one, and of the file's when
/// the zone is not what the file says. A signed SOA keeps the file's where that is ahead, else the
/// last one: nobody here signs another. `state` has records.
[[nodiscard]] dns::Serial recovered_serial(const MergeBase& state, dns::Serial file_serial,
                                           const zone::ZoneFileInfo& source, RecoveredZone zone);

}  // namespace pando::manager
