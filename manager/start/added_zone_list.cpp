#include "manager/start/added_zone_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crash_point.h"
#include "config/added_zones.h"
#include "config/files.h"
#include "dns/folded_key.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// Bytes of one line: settings of a zone are some hundred.
constexpr std::size_t kMaxLine = std::size_t{32} << 10;

/// The file may have as many bytes that are of no use, besides as many again as are of use.
constexpr std::size_t kSpareBytes = std::size_t{64} << 10;

constexpr std::string_view kHead =
    "# Zones that were added by pandoctl: NAME FILE TEMPLATE SETTINGS. The manager writes this\n"
    "# file; pandoctl zone add, remove and configure change it.\n";

constexpr std::string_view kMark =
    "Zones were added by pandoctl. The list beside this file has to be there.\n";

/// One line of the list, taken apart.
struct Line {
  std::string name;
  std::string file = "-";
  std::string template_name = "-";
  json settings = json::object();

  [[nodiscard]] std::string text() const {
    const std::string own =
        settings.empty() ? "" : " " + settings.dump(-1, ' ', false, json::error_handler_t::replace);
    // A line with `#` in front would be a comment.
    const bool is_hidden = name.front() == '#';
    return fmt::format("{}{} {} {}{}", is_hidden ? "\\035" : "", name.substr(is_hidden ? 1 : 0),
                       file, template_name, own);
  }
  static Line from_text(std::string_view text);
  /// A key of the zone, or its file or template. Null: the default again.
  Status set(const std::string& key, json value);
};

Line Line::from_text(std::string_view text) {
  Line line;
  line.name = config::take_word(text);
  line.file = config::take_word(text);
  line.template_name = config::take_word(text);
  json settings = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (settings.is_object()) line.settings = std::move(settings);
  return line;
}

/// Text for a word of the list.
Result<std::string> word_of(const std::string& key, const json& value) {
  if (value.is_null()) return std::string("-");
  if (!value.is_string()) return fail(Errc::kInvalid, "'{}' is no text", key);
  const std::string& text = value.get_ref<const std::string&>();
  const auto bad = [](unsigned char c) { return c <= ' ' || c == 0x7F; };
  if (text.empty() || text == "-" || std::any_of(text.begin(), text.end(), bad))
    return fail(Errc::kInvalid, "'{}' has blanks or control characters, or is empty", key);
  return text;
}

Status Line::set(const std::string& key, json value) {
  if (key == "name") return fail(Errc::kInvalid, "a zone keeps its name");
  if (key == "file" || key == "template") {
    auto word = word_of(key, value);
    if (!word) return pass(word);
    (key == "file" ? file : template_name) = std::move(*word);
  } else if (value.is_null()) {
    settings.erase(key);
  } else {
    settings[key] = std::move(value);
  }
  return {};
}

/// A zone as a command gives it.
Result<Line> line_of(const std::string& text) {
  json zone = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!zone.is_object() || !zone.contains("name") || !zone["name"].is_string())
    return fail(Errc::kInvalid, "a zone to add is an object with a 'name'");
  const std::string& written = zone["name"].get_ref<const std::string&>();
  const auto name = dns::Name::from_text(written);
  if (!name) return fail(name.error().code, "zone '{}': {}", written, name.error().text);
  Line line;
  line.name = to_text(*name);
  for (auto& [key, value] : zone.items()) {
    if (key == "name") continue;
    if (auto set = line.set(key, std::move(value)); !set)
      return fail(set.error().code, "zone {}: {}", line.name, set.error().text);
  }
  if (line.text().size() > kMaxLine)
    return fail(Errc::kInvalid, "zone {}: more than {} bytes of settings", line.name, kMaxLine);
  return line;
}

/// dns::folded_key() of the catalog to which the zone of a line belongs; empty: to none.
std::string catalog_of(const std::string& line) {
  constexpr const char* kKey = "member-of";
  if (line.find(kKey) == std::string::npos) return {};
  const Line parts = Line::from_text(line);
  const auto found = parts.settings.find(kKey);
  if (found == parts.settings.end() || !found->is_string()) return {};
  const auto name = dns::Name::from_text(found->get_ref<const std::string&>());
  return name ? dns::folded_key(*name) : std::string();
}

/// Members of a catalog that left the configuration are zones like others.
bool is_consumed(const std::string& catalog, const config::Settings& settings) {
  const auto found = std::ranges::find(settings.catalogs, dns::name_of_key(catalog),
                                       [](const config::Catalog& one) { return one.zone.view(); });
  return found != settings.catalogs.end();
}

/// The owner of this zone, which is above a member of the catalog. Empty: nobody else, as there is
/// no such zone, or the catalog's primary has its names anyway.
std::string other_owner(const CatalogUpdate& update, dns::NameView zone,
                        const config::Settings& settings) {
  const auto index = settings.zones.find(zone);
  if (!index) return {};
  const config::ZoneRef found = settings.zones[*index];
  const auto& catalog = found.options->member_of;
  if (catalog && *catalog == update.catalog.view()) return {};
  if (catalog && is_consumed(dns::folded_key(*catalog), settings))
    return fmt::format("catalog {} has", to_text(*catalog));
  return found.added ? "a command has added" : "the configuration has";
}

/// Why the catalog may not have the member; empty: it may. The closest name above the member
/// decides: a zone of others, or a name of `members-below`. What lies below the catalog's own name
/// is its primary's already.
std::string why_outside(const CatalogUpdate& update, dns::NameView member,
                        const config::Settings& settings) {
  bool below_catalog = false;
  for (dns::NameView above = member;; above = above.parent()) {
    if (std::ranges::any_of(update.members_below,
                            [&](const dns::Name& name) { return name == above; }))
      return {};
    below_catalog = below_catalog || above == update.catalog.view();
    if (!below_catalog && !(above == member))
      if (const std::string owner = other_owner(update, above, settings); !owner.empty())
        return fmt::format("{} {} above it", owner, to_text(above));
    if (above.is_root()) break;
  }
  return update.members_below.empty() ? "" : "members-below does not have it";
}

}  // namespace

AddedZoneList::AddedZoneList(Files& files, const std::string& journal)
    : files_(files),
      path_(config::added_list_path(journal)),
      mark_path_(config::added_mark_path(journal)) {}

/// Hash of the file's name, inode, size and times; 0 without a file.
std::uint64_t AddedZoneList::fingerprint() const {
  const auto fd = config::open_regular_file(path_);
  if (!fd) return 0;
  const auto folded = config::fold_file(0, *fd, path_);
  return folded ? *folded : 0;
}

Status AddedZoneList::load(bool expected) {
  if (file_is_behind_) return {};
  const std::uint64_t now = fingerprint();
  if (seen_ != 0 && seen_ == now) return {};
  const auto bytes = read_file(files_, path_);
  if (!bytes && bytes.error().code == Errc::kNotFound) {
    if (expected || !lines_.empty() || files_.open(mark_path_, OpenMode::kRead))
      return pass(config::missing_added_list(path_));
    return {};
  }
  if (!bytes) return pass(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto list = config::parse_added_list(text);
  if (!list) return fail(list.error().code, "{}: {}", path_, list.error().text);
  lines_.clear();
  saved_.clear();
  seen_ = end_ = whole_bytes_ = 0;
  for (const config::AddedLine& zone : list->zones) {
    std::string_view rest = zone.text;
    auto name = dns::Name::from_text(config::take_word(rest));
    if (!name) return fail(Errc::kInvalid, "{}:{}: {}", path_, zone.number, name.error().text);
    put(dns::folded_key(*name), std::string(zone.text));
  }
  changed_.clear();
  seen_ = now;
  // A part after the last whole change goes when the file is written anew.
  end_ = list->end == text.size() ? list->end : 0;
  return {};
}

void AddedZoneList::put(const std::string& key, std::optional<std::string> line) {
  const auto found = lines_.find(key);
  std::optional<std::string> before;
  if (found != lines_.end()) before = std::move(found->second);
  if (before) whole_bytes_ -= before->size() + 1;
  if (line) whole_bytes_ += line->size() + 1;
  if (line)
    lines_.insert_or_assign(key, std::move(*line));
  else if (found != lines_.end())
    lines_.erase(found);
  changed_.try_emplace(key, std::move(before));  // the first one counts
}

void AddedZoneList::put_back(const Before& before) {
  for (const auto& [key, line] : before) put(key, line);
}

void AddedZoneList::forget() {
  put_back(Before(changed_));
  changed_.clear();
}

// Changes -----------------------------------------------------------------------------------------

Status AddedZoneList::apply(const RunTimeChange& change, config::Settings& settings,
                            std::vector<dns::Name>& zones) {
  config::drop_unused_options(settings);
  if (!change.add.empty()) return add(change.add, settings, zones);
  if (change.catalog) return follow(*change.catalog, settings, zones);
  const std::vector<dns::Name> named =
      change.set ? std::vector<dns::Name>{change.set->zone} : change.remove;
  const Status done = change.set ? set(*change.set, settings) : remove(named, settings);
  if (done) zones.insert(zones.end(), named.begin(), named.end());
  return done;
}

Status AddedZoneList::add(const std::vector<std::string>& zones, config::Settings& settings,
                          std::vector<dns::Name>& changed) {
  std::vector<dns::Name> names;
  std::vector<std::string> lines;
  std::set<std::string> keys;
  for (const std::string& zone : zones) {
    auto line = line_of(zone);
    if (!line) return pass(line);
    const dns::Name name = dns::Name::from_text(line->name).value();
    const std::string key = dns::folded_key(name);
    if (lines_.contains(key) || !keys.insert(key).second)
      return fail(Errc::kExists, "zone {} was added before", line->name);
    if (settings.zones.find(name))
      return fail(Errc::kExists, "the configuration has zone {}", line->name);
    names.push_back(name);
    lines.push_back(line->text());
  }
  if (auto put_in = config::add_zones(settings, lines); !put_in) return put_in;
  for (std::size_t i = 0; i < names.size(); ++i)
    put(dns::folded_key(names[i]), std::move(lines[i]));
  changed.insert(changed.end(), names.begin(), names.end());
  return {};
}

/// The configuration's own zones are removed there.
Status AddedZoneList::check_listed(const dns::Name& zone, const config::Settings& settings) const {
  if (const auto found = lines_.find(dns::folded_key(zone)); found != lines_.end()) {
    const std::string catalog = catalog_of(found->second);
    if (catalog.empty() || !is_consumed(catalog, settings)) return {};
    return fail(Errc::kInvalid, "zone {} is a member of catalog {}: change it there", to_text(zone),
                to_text(dns::name_of_key(catalog)));
  }
  if (settings.zones.find(zone))
    return fail(Errc::kInvalid, "zone {} is the configuration's: change it there, and reload",
                to_text(zone));
  return fail(Errc::kNotFound, "no zone {}", to_text(zone));
}

Status AddedZoneList::remove(const std::vector<dns::Name>& zones, config::Settings& settings) {
  std::set<std::string> keys;
  for (const dns::Name& zone : zones) {
    if (auto listed = check_listed(zone, settings); !listed) return listed;
    keys.insert(dns::folded_key(zone));
  }
  // If the configuration also names the zone, it wins.
  settings.zones = settings.zones.filtered([&](const config::ZoneRef& zone) {
    return !zone.added || !keys.contains(dns::folded_key(zone.name));
  });
  for (const std::string& key : keys) put(key, std::nullopt);
  return {};
}

Status AddedZoneList::set(const RunTimeChange::Setting& setting, config::Settings& settings) {
  if (auto listed = check_listed(setting.zone, settings); !listed) return listed;
  const std::string key = dns::folded_key(setting.zone);
  const std::string stored = lines_.at(key);
  Line line = Line::from_text(stored);
  json value = setting.value.empty()
                   ? json(nullptr)
                   : json::parse(setting.value, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return fail(Errc::kInvalid, "the value is no JSON");
  if (auto done = line.set(setting.key, std::move(value)); !done) return done;
  if (line.text().size() > kMaxLine)
    return fail(Errc::kInvalid, "zone {}: more than {} bytes of settings", line.name, kMaxLine);
  config::ZoneTable before = settings.zones;
  settings.zones = settings.zones.filtered([&](const config::ZoneRef& zone) {
    return !zone.added || !(zone.name == setting.zone.view());
  });
  if (settings.zones.size() == before.size())
    return fail(Errc::kExists, "the configuration has zone {}, too: its settings are used",
                line.name);
  if (auto put_in = config::add_zones(settings, {line.text()}); !put_in) {
    settings.zones = std::move(before);
    return put_in;
  }
  put(key, line.text());
  return {};
}

// Catalogs ----------------------------------------------------------------------------------------

/// A member that is served already stays when a zone comes above it: others must not take zones
/// away by a name above theirs. `members-below` says what the catalog may have at any time.
void AddedZoneList::refuse_outside(CatalogUpdate& update, const config::Settings& settings) const {
  const std::string catalog = dns::folded_key(update.catalog);
  const auto is_listed = [&](const dns::Name& member) {
    const auto listed = lines_.find(dns::folded_key(member));
    return listed != lines_.end() && catalog_of(listed->second) == catalog;
  };
  std::erase_if(update.members, [&](const CatalogUpdate::Member& member) {
    std::string reason = why_outside(update, member.zone, settings);
    if (reason.empty()) return false;
    const bool stays = update.members_below.empty() && is_listed(member.zone);
    (stays ? update.retained : update.refused).push_back({member.zone, std::move(reason)});
    return !stays;
  });
}

/// Members in the list that the catalog does not have any more.
std::set<std::string> AddedZoneList::find_gone(CatalogUpdate& update) const {
  std::set<std::string> wanted;
  for (const CatalogUpdate::Member& member : update.members)
    wanted.insert(dns::folded_key(member.zone));
  const std::string catalog = dns::folded_key(update.catalog);
  std::set<std::string> gone;
  std::size_t before = 0;
  for (const auto& [key, line] : lines_) {
    if (catalog_of(line) != catalog) continue;
    ++before;
    if (!wanted.contains(key)) gone.insert(key);
  }
  const bool are_many =
      update.members.empty() || (gone.size() >= CatalogUpdate::kFew && 2 * gone.size() > before);
  if (!are_many || update.may_remove_many) return gone;
  update.waiting = gone.size();
  return {};
}

/// Lines of members that are new in the list or differ from it, by key.
std::map<std::string, std::string> AddedZoneList::find_new(CatalogUpdate& update,
                                                           const config::Settings& settings) const {
  const std::string catalog = dns::folded_key(update.catalog);
  Line line;
  line.settings["primaries"] = update.primaries;
  line.settings["member-of"] = to_text(update.catalog);
  std::map<std::string, std::string> lines;
  for (const CatalogUpdate::Member& member : update.members) {
    std::string key = dns::folded_key(member.zone);
    line.name = to_text(member.zone);
    line.template_name = member.template_name.empty() ? "-" : member.template_name;
    std::string text = line.text();
    const auto refuse = [&](std::string reason) {
      update.refused.push_back({member.zone, std::move(reason)});
    };
    if (const auto listed = lines_.find(key); listed != lines_.end()) {
      if (listed->second == text) continue;
      const std::string owner = catalog_of(listed->second);
      if (owner.empty()) {
        refuse("a command has added it");
      } else if (owner == catalog) {
        ++update.changed;
        lines.emplace(std::move(key), std::move(text));
      } else if (update.yielded.contains(key)) {
        ++update.taken_over;
        lines.emplace(std::move(key), std::move(text));
      } else {
        refuse(fmt::format("catalog {} has it", to_text(dns::name_of_key(owner))));
      }
    } else if (settings.zones.find(member.zone)) {
      refuse("the configuration has it");
    } else {
      ++update.added;
      lines.emplace(std::move(key), std::move(text));
    }
  }
  return lines;
}

Status AddedZoneList::follow(CatalogUpdate& update, config::Settings& settings,
                             std::vector<dns::Name>& changed) {
  // A reload may have removed the catalog after its members were read. They would become zones that
  // no catalog can take away.
  if (!is_consumed(dns::folded_key(update.catalog), settings)) return {};
  refuse_outside(update, settings);
  const std::set<std::string> gone = find_gone(update);
  std::map<std::string, std::string> fresh = find_new(update, settings);
  update.removed = gone.size();
  if (gone.empty() && fresh.empty()) return {};
  config::ZoneTable before = settings.zones;
  settings.zones = settings.zones.filtered([&](const config::ZoneRef& zone) {
    if (!zone.added) return true;
    const std::string key = dns::folded_key(zone.name);
    return !gone.contains(key) && !fresh.contains(key);
  });
  std::vector<std::string> lines;
  for (const auto& [key, line] : fresh) lines.push_back(line);
  if (auto put_in = config::add_zones(settings, lines); !put_in) {
    settings.zones = std::move(before);
    return put_in;
  }
  for (const std::string& key : gone) {
    put(key, std::nullopt);
    changed.emplace_back(dns::name_of_key(key));
  }
  for (auto& [key, line] : fresh) {
    changed.emplace_back(dns::name_of_key(key));
    put(key, std::move(line));
  }
  return {};
}

// The file ----------------------------------------------------------------------------------------

std::string AddedZoneList::change_text() const {
  std::string text;
  for (const auto& [key, before] : changed_) {
    const auto now = lines_.find(key);
    if (now != lines_.end())
      text.append(now->second).append(1, '\n');
    else if (before)
      text.append("removed ").append(to_text(dns::Name(dns::name_of_key(key)))).append(1, '\n');
  }
  return text;
}

Status AddedZoneList::save() {
  if (auto written = write(change_text()); !written) {
    forget();
    return fail(written.error().code, "{}: {}", path_, written.error().text);
  }
  saved_ = std::exchange(changed_, {});
  return {};
}

Status AddedZoneList::undo() {
  put_back(std::exchange(saved_, {}));
  auto written = write(change_text());
  changed_.clear();
  return written;
}

/// After an error the change may be in the file or not, so the next one writes the whole file.
Status AddedZoneList::write(const std::string& change) {
  if (change.empty()) return {};
  const bool is_small = end_ + change.size() <= 2 * whole_bytes_ + kSpareBytes;
  auto written = end_ != 0 && is_small && !file_is_behind_ ? append(change) : write_whole();
  if (written) written = write_mark();
  file_is_behind_ = !written;
  seen_ = fingerprint();
  return written;
}

Status AddedZoneList::append(const std::string& change) {
  auto file = files_.open(path_, OpenMode::kWrite);
  if (!file) return pass(file);
  const std::string text = change + config::commit_line(change);
  if (auto written = (*file)->write_at(end_, bytes_of_text(text)); !written) return written;
  crash_point("added-zones-written");
  if (auto synced = (*file)->sync(); !synced) return synced;
  crash_point("added-zones-synced");
  end_ += text.size();
  return {};
}

Status AddedZoneList::write_whole() {
  std::string text(kHead);
  text.reserve(whole_bytes_ + kHead.size() + 64);
  for (const auto& [key, line] : lines_) text.append(line).append(1, '\n');
  text += config::commit_line(text);
  if (auto written = write_file_atomically(files_, path_, bytes_of_text(text)); !written)
    return written;
  crash_point("added-zones-rewritten");
  end_ = text.size();
  ++rewritten_;
  return {};
}

/// Written after the list, which is whole without its mark.
Status AddedZoneList::write_mark() {
  if (files_.open(mark_path_, OpenMode::kRead)) return {};
  return write_file_atomically(files_, mark_path_, bytes_of_text(kMark));
}

}  // namespace pando::manager
