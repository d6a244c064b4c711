#include "config/effective.h"

#include <map>
#include <utility>

#include "config/tables.h"

namespace pando::config {

namespace {

void show_templates(const Settings& settings, SettingLines& out) {
  if (settings.templates.empty()) return;
  out.open("templates");
  for (const auto& [name, options] : settings.templates) {
    out.open_element();
    out.add("name", yaml_scalar(name));
    show_fields(kZoneOptionFields, settings.zones.options()[options], out);
    out.close();
  }
  out.close();
}

std::string cut(std::string value) {
  if (value.size() > kMaxValueBytes) value.replace(kMaxValueBytes, std::string::npos, "...");
  return value;
}

void cut_values(SettingChanges& changes) {
  for (SettingChange& change : changes) {
    change.before = cut(std::move(change.before));
    change.after = cut(std::move(change.after));
  }
}

/// Compares zones. Options are compared once for each pair, as many zones share them.
class ZoneComparison {
 public:
  ZoneComparison(const ZoneTable& running, const ZoneTable& wanted, std::size_t limit)
      : running_(running), wanted_(wanted), limit_(limit) {}

  void run(ConfigDifference& out) {
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const auto other = wanted_.find(running_[i].name);
      if (!other && ++out.zones_removed <= limit_) out.removed.emplace_back(running_[i].name);
      if (other) compare_zone(i, *other, out);
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (!running_.find(wanted_[i].name) && ++out.zones_added <= limit_)
        out.added.emplace_back(wanted_[i].name);
  }

 private:
  void compare_zone(std::size_t before, std::size_t after, ConfigDifference& out) {
    const ZoneRef a = running_[before];
    const ZoneRef b = wanted_[after];
    const bool same_file = running_.path(before) == wanted_.path(after);
    if (same_file && a.added == b.added && same(a.options, b.options)) return;
    if (++out.zones_changed > limit_) return;
    ZoneChange change{dns::Name(a.name), {}};
    if (!same_file)
      change.settings.push_back({"file", shown(running_.path(before)).value_or(""),
                                 shown(wanted_.path(after)).value_or("")});
    compare_fields(kZoneOptionFields, "", *a.options, *b.options, change.settings);
    if (a.added != b.added)
      change.settings.push_back({"source", source(a.added), source(b.added)});
    cut_values(change.settings);
    out.changed.push_back(std::move(change));
  }

  static std::string source(bool added) {
    return added ? "list of added zones" : "configuration";
  }

  bool same(const ZoneOptions* a, const ZoneOptions* b) {
    const auto [found, is_new] = known_.try_emplace({a, b}, false);
    if (is_new) found->second = *a == *b;
    return found->second;
  }

  const ZoneTable& running_;
  const ZoneTable& wanted_;
  std::size_t limit_;
  std::map<std::pair<const ZoneOptions*, const ZoneOptions*>, bool> known_;
};

void compare_templates(const Settings& running, const Settings& wanted, SettingChanges& out) {
  const auto options_in = [](const Settings& settings, const std::string& name) {
    const auto found = settings.templates.find(name);
    return found == settings.templates.end() ? nullptr
                                             : &settings.zones.options()[found->second];
  };
  const ZoneOptions* const none = nullptr;
  const auto compare_one = [&](const std::string& name, const ZoneOptions* before,
                               const ZoneOptions* after) {
    const std::string path = fmt::format("templates[{}]", yaml_scalar(name));
    if (before == nullptr) out.push_back({path + ".name", "", yaml_scalar(name)});
    if (after == nullptr) out.push_back({path + ".name", yaml_scalar(name), ""});
    compare_nested(kZoneOptionFields, path + ".", before, after, out);
  };
  for (const auto& [name, options] : running.templates)
    compare_one(name, &running.zones.options()[options], options_in(wanted, name));
  for (const auto& [name, options] : wanted.templates)
    if (options_in(running, name) == nullptr)
      compare_one(name, none, &wanted.zones.options()[options]);
}

}  // namespace

std::string effective_server(const Settings& settings) {
  SettingLines out;
  show_fields(kFirstSections, settings, out);
  show_templates(settings, out);
  show_fields(kLaterSections, settings, out);
  return out.text();
}

std::string effective_zone(const Settings& settings, std::size_t index) {
  const ZoneRef zone = settings.zones[index];
  SettingLines out;
  if (zone.added) out.add_comment("in the list of added zones, not in the configuration");
  out.open("zones");
  out.open_element();
  out.add("name", yaml_name(zone.name));
  if (const Shown file = shown(settings.zones.path(index))) out.add("file", *file);
  show_fields(kZoneOptionFields, *zone.options, out);
  return out.text();
}

ConfigDifference compare(const Settings& running, const Settings& wanted, std::size_t limit) {
  ConfigDifference difference;
  SettingChanges& settings = difference.settings;
  compare_fields(kFirstSections, "", running, wanted, settings);
  compare_templates(running, wanted, settings);
  compare_fields(kLaterSections, "", running, wanted, settings);
  difference.settings_changed = settings.size();
  if (settings.size() > limit) settings.resize(limit);
  cut_values(settings);
  ZoneComparison(running.zones, wanted.zones, limit).run(difference);
  return difference;
}

}  // namespace pando::config
