#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/value.h"

/// The sections that define zones: templates, zones, zone-lists.
namespace pando::config {

/// Reads templates in two steps. Their names exist first, so that other sections can refer to them.
/// Their options are read when every object to which they refer exists.
class TemplateReader {
 public:
  explicit TemplateReader(const std::optional<Value>& list);
  TemplateReader(const TemplateReader&) = delete;
  TemplateReader& operator=(const TemplateReader&) = delete;
  void read_options();

 private:
  struct Pending {
    explicit Pending(const Value& of) : value(of), members(value) {}
    Value value;
    Members members;
    std::string name{};
  };
  void add(const Value& value);
  std::optional<Value> list_;  // the templates' paths begin with that of their list
  std::vector<std::unique_ptr<Pending>> pending_;
};

void read_zones(const Value& value);

/// Adds each catalog: a consumed one as a secondary zone, a produced one with the manager's file.
/// Only clients that may transfer a catalog may query its records (RFC 9432 §7).
void add_catalog_zones(Context& context);

/// Options of a mapping that has zone options alone, on top of those with the number `base`;
/// returns their number.
std::uint32_t read_zone_options(const Value& value, std::uint32_t base);

/// Reads `zone-lists`: patterns of files with "NAME FILE [TEMPLATE]" per line, for up to a million
/// zones. FILE "-" means no file. `#` starts a comment at the beginning of a line.
void read_zone_lists(const Value& value);

/// Adds the zones of a list that load() left to read_lists().
void read_unread_list(Context& context, const UnreadList& list);

/// Adds a zone to the table after the checks common to all zones; returns the reason of a failure.
/// `added`: by a command.
Status add_zone(Context& context, dns::NameView name, std::string_view file, std::uint32_t options,
                bool added = false);

}  // namespace pando::config
