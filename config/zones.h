#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/value.h"

/// The sections that make zones: templates, zones, zone-lists.
namespace pando::config {

/// Templates in two steps: their names exist first, so that others can refer to them; what they say
/// is read when everything that they refer to exists.
class TemplateReader {
 public:
  explicit TemplateReader(const std::optional<Value>& list);
  void read_options();

 private:
  struct Pending {
    std::string name;
    Value value;
    Members members;
  };
  void add(const Value& value);
  std::vector<Pending> pending_;
};

void read_zones(const Value& value);

/// `zone-lists`: patterns of files with "NAME FILE [TEMPLATE]" per line, made for a million zones.
/// FILE "-" means none. `#` starts a comment at the beginning of a line.
void read_zone_lists(const Value& value);

/// Adds the zones of a list that was left for later.
void read_unread_list(Context& context, const UnreadList& list);

/// Adds a zone to the table after the checks that every zone has to pass; a reason if it fails.
Status add_zone(Context& context, dns::NameView name, std::string_view file, std::uint32_t options);

}  // namespace pando::config
