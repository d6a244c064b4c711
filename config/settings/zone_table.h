#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/rare_value.h"
#include "dns/name.h"
#include "zone/settings/compiled_settings.h"

namespace pando::config {

enum class SerialPolicy : std::uint8_t { kIncrement, kUnixtime, kDate };

/// The handling of data whose signatures or denial of existence are wrong (zone/dnssec).
enum class SignaturePolicy : std::uint8_t {
  kOff,     ///< they are not checked
  kWarn,    ///< served; the faults are in the log
  kRefuse,  ///< not served: the version before stays
};

/// The configuration of a zone besides its name and file. Zones without options of their own share
/// the options of their template.
struct ZoneOptions {
  std::vector<std::string> primaries;      ///< names of remotes; not empty = the zone is secondary
  zone::Acl allow_query{zone::AclRule{}};  ///< default: one rule that matches everybody
  zone::Acl allow_transfer;
  zone::Acl allow_update;
  zone::Acl allow_notify;           ///< as written: without the primaries' addresses
  std::vector<std::string> notify;  ///< names of remotes
  std::chrono::milliseconds notify_delay{0};
  SerialPolicy serial_policy = SerialPolicy::kIncrement;
  std::optional<std::chrono::milliseconds> export_interval;  ///< absent = off
  RareValue<dns::Name> catalog;                              ///< member of this produced catalog
  std::string catalog_group;  ///< its property `group` there (RFC 9432 §4.4.2); empty = none
  /// The consumed catalog to which the zone belongs; set in the list of added zones alone.
  RareValue<dns::Name> member_of;
  bool forward_updates = false;
  SignaturePolicy verify = SignaturePolicy::kWarn;
  /// A program that judges each new version, and its arguments; empty = none.
  std::vector<std::string> verify_command;
  std::chrono::milliseconds verify_time = std::chrono::minutes(1);  ///< for its verdict
  std::string dnssec;  ///< name of the policy by which the zone is signed here; empty = not signed
  [[nodiscard]] bool is_secondary() const noexcept { return !primaries.empty(); }
  [[nodiscard]] bool is_signed_here() const noexcept { return !dnssec.empty(); }
  bool operator==(const ZoneOptions&) const = default;
};

/// One zone of the table; valid while the table is unchanged.
struct ZoneRef {
  dns::NameView name;     ///< case as written
  std::string_view file;  ///< as written; see ZoneTable::path(). Empty = no file
  const ZoneOptions* options = nullptr;
  bool added = false;  ///< by a command; not in the configuration
};

/// All configured zones in two arrays and one text: a million zones cost about 80 MB and no heap
/// object each. Order is that of the configuration.
class ZoneTable {
 public:
  /// Relative file names start at `folder`.
  ZoneTable() : ZoneTable(".") {}
  explicit ZoneTable(std::string folder) : folder_(std::move(folder)) {}

  /// Adds options to which zones can refer; returns their number for add().
  std::uint32_t add_options(ZoneOptions options);
  /// The same, unless equal options are among the last ones: zones that are added one by one often
  /// have the same.
  std::uint32_t share_options(ZoneOptions options);
  /// Drops options that neither a zone nor `kept` refers to. Returns the new number of each old
  /// one; that of dropped ones means nothing.
  std::vector<std::uint32_t> drop_unused_options(const std::vector<std::uint32_t>& kept);
  /// kExists when the table already has the name (case-insensitively).
  Status add(dns::NameView name, std::string_view file, std::uint32_t options, bool added = false);

  /// A table with the same options and all zones for which `keep` is true.
  [[nodiscard]] ZoneTable filtered(const std::function<bool(const ZoneRef&)>& keep) const;

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] ZoneRef operator[](std::size_t index) const noexcept;
  /// Index of the zone with exactly this name.
  [[nodiscard]] std::optional<std::size_t> find(dns::NameView name) const noexcept;
  /// Of the zone with exactly this name; null: there is none.
  [[nodiscard]] const ZoneOptions* options_of(dns::NameView name) const noexcept;
  /// Absolute path of the zone's file; empty for a zone without file.
  [[nodiscard]] std::string path(std::size_t index) const;
  [[nodiscard]] const std::vector<ZoneOptions>& options() const noexcept { return options_; }

 private:
  struct Entry {
    std::uint64_t text_at;  // name's wire octets, then the file name
    std::uint32_t options;
    std::uint16_t file_bytes;
    std::uint8_t name_octets;
    bool added;
  };
  [[nodiscard]] dns::NameView name_of(const Entry& entry) const noexcept;
  /// Place of a name in the index, present or not: the slot, and the bits of the name's hash kept
  /// in that slot.
  struct Place {
    std::size_t slot;
    std::uint32_t tag;
  };
  [[nodiscard]] Place place_of(dns::NameView name) const noexcept;
  void grow_index();

  std::string folder_;
  std::vector<ZoneOptions> options_;
  std::vector<Entry> entries_;
  Bytes text_;
  // Open addressing, a power of two of slots. A slot holds entry number + 1 (0 = free) and a few
  // bits of the name's hash, so that probing rarely reads other names.
  std::vector<std::uint32_t> index_;
};

}  // namespace pando::config
