#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"
#include "dns/name.h"
#include "manager/io/store_file.h"
#include "manager/start/created_zones.h"

namespace pando::manager {

/// The members that a consumed catalog has now (RFC 9432), and what became of them in the list.
struct CatalogUpdate {
  struct Member {
    dns::Name zone;
    std::string template_name;  ///< empty: none
  };
  struct Refused {
    dns::Name zone;
    std::string reason;
  };
  /// Fewer members may leave together whatever their share, unless the catalog is empty then.
  static constexpr std::size_t kFew = 4;

  dns::Name catalog;
  std::vector<std::string> primaries{};
  std::vector<Member> members{};
  std::vector<dns::Name> members_below{};  ///< see config::Catalog
  std::set<std::string> yielded{};  ///< dns::folded_key() of members that other catalogs yield to it
  bool may_remove_many = false;     ///< more than half of the members may leave together, or all

  std::uint64_t added = 0;
  std::uint64_t changed = 0;     ///< template or primaries are others
  std::uint64_t taken_over = 0;  ///< from other catalogs
  std::uint64_t removed = 0;
  std::uint64_t waiting =
      0;  ///< members that the catalog dropped, but that stay because these were too many
  std::vector<Refused> refused{};
  /// Members that were there before a zone of others came above them. Such a member stays, unless
  /// `members_below` says what the catalog may have.
  std::vector<Refused> retained{};
};

/// What a command does to zones; one of the members is filled. All but `reread` concern zones that
/// were added by commands.
struct RunTimeChange {
  /// JSON objects as in the configuration's `zones`: name, file, template, and zone keys.
  std::vector<std::string> add{};
  std::vector<CreatedZone> create{};  ///< those of `add` that came with their content
  std::vector<dns::Name> remove{};
  struct Setting {
    dns::Name zone;
    std::string key;
    std::string value;  ///< JSON text; empty: the zone has the template's value again
  };
  std::optional<Setting> set{};
  std::shared_ptr<CatalogUpdate> catalog{};
  std::vector<dns::Name> reread{};  ///< primary zones whose files are read again
};

/// The file of the zones that commands have added (config/added_list.h). Changes are
/// appended; the file is written anew when most of it is of no use any more.
///
/// Not thread-safe: one thread at a time.
class AddedZoneList {
 public:
  /// `files` outlives the object. `journal`: the folder of the list.
  AddedZoneList(Files& files, const std::string& journal);

  /// Reads the file, unless it is as this object wrote it. A journal that never had a list has an
  /// empty one; kNotFound: it had one, or one is `expected`.
  Status load(bool expected);
  /// Makes the change in the list and in `settings`. kExists, kNotFound, kInvalid: nothing has
  /// changed. Adds the names of the changed zones to `zones`.
  Status apply(const RunTimeChange& change, config::Settings& settings,
               std::vector<dns::Name>& zones);
  /// Writes all that apply() has changed, durably and as one change: one write, one sync. After an
  /// error the list is as it was before.
  Status save();
  /// Takes the last saved change back, durably: its zones could not be configured.
  Status undo();
  /// Drops what apply() has changed.
  void forget();

  [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }
  /// Times that the file was written as a whole.
  [[nodiscard]] std::uint64_t rewritten() const noexcept { return rewritten_; }

 private:
  using Lines = std::map<std::string, std::string>;  // by dns::folded_key()
  /// Lines before a change; nullopt: the zone was not in the list.
  using Before = std::map<std::string, std::optional<std::string>>;

  Status add(const std::vector<std::string>& zones, config::Settings& settings,
             std::vector<dns::Name>& changed);
  Status remove(const std::vector<dns::Name>& zones, config::Settings& settings);
  Status set(const RunTimeChange::Setting& setting, config::Settings& settings);
  Status follow(CatalogUpdate& update, config::Settings& settings,
                std::vector<dns::Name>& changed);
  void refuse_outside(CatalogUpdate& update, const config::Settings& settings) const;
  [[nodiscard]] std::set<std::string> find_gone(CatalogUpdate& update) const;
  std::map<std::string, std::string> find_new(CatalogUpdate& update,
                                              const config::Settings& settings) const;
  [[nodiscard]] Status check_listed(const dns::Name& zone, const config::Settings& settings) const;
  void put(const std::string& key, std::optional<std::string> line);
  void put_back(const Before& before);
  [[nodiscard]] std::string change_text() const;
  Status write(const std::string& change);
  Status append(const std::string& change);
  Status write_whole();
  Status write_mark();
  [[nodiscard]] std::uint64_t fingerprint() const;

  Files& files_;
  std::string path_;
  std::string mark_path_;
  Lines lines_;
  Before changed_;               // since the last save()
  Before saved_;                 // by the last save()
  std::uint64_t seen_ = 0;       // fingerprint of the file when `lines_` were its content; 0: never
  std::size_t end_ = 0;          // bytes of its whole changes; 0: the file has to be written anew
  std::size_t whole_bytes_ = 0;  // of all lines
  bool file_is_behind_ = false;  // a write failed: `lines_` count, whatever the file has
  std::uint64_t rewritten_ = 0;
};

}  // namespace pando::manager
