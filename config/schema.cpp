#include "config/schema.h"

#include "config/tables.h"

namespace pando::config {

std::vector<KeyInfo> schema() {
  std::vector<KeyInfo> keys{{"include"}};
  list_fields(kFirstSections, "", keys);
  keys.push_back({"templates"});
  list_fields(kTemplateHeadFields, "templates[].", keys);
  keys.push_back({"zones"});
  list_fields(kZoneHeadFields, "zones[].", keys);
  list_fields(kZoneOptionFields, "zones[].", keys);
  for (KeyInfo& key : list_rule_fields()) keys.push_back(std::move(key));
  keys.push_back({"zone-lists"});
  list_fields(kLaterSections, "", keys);
  return keys;
}

namespace {

template <class Section, std::size_t N>
void find_changed(const Field<Section> (&table)[N], const Section& running, const Section& wanted,
                  const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& row : table)
    if (row.apply == Apply::kRestart && !row.same(running, wanted))
      out.push_back(prefix + std::string(row.name));
}

}  // namespace

std::vector<std::string> restart_needed(const Settings& running, const Settings& wanted) {
  std::vector<std::string> keys;
  find_changed(kServerFields, running.server, wanted.server, "server.", keys);
  find_changed(kStoreFields, running.store, wanted.store, "store.", keys);
  find_changed(kLimitFields, running.limits, wanted.limits, "limits.", keys);
  // All other keys of this section concern pando-http alone, or take effect at a reload.
  const Http off;
  const Http& before = running.http ? *running.http : off;
  const Http& after = wanted.http ? *wanted.http : off;
  const bool same_user = running.http.has_value() == wanted.http.has_value() &&
                         before.user == after.user;
  if (!same_user) keys.emplace_back("http.user");
  if (before.metrics_zones != after.metrics_zones) keys.emplace_back("http.metrics-zones");
  return keys;
}

}  // namespace pando::config
