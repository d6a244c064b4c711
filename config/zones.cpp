#include "config/zones.h"

#include <algorithm>

#include "config/tables.h"
#include "zone/settings/acl.h"

namespace pando::config {

namespace {

constexpr std::string_view kDefaultTemplate = "default";

ZoneOptions changed_options(const Value& value, Members& members, std::uint32_t base) {
  ZoneOptions options = value.context().settings.zones.options()[base];
  read_members(value, members, kZoneOptionFields, options);
  members.finish();
  return options;
}

/// Options of a template or zone: those of `base`, replaced key by key. Returns `base` itself when
/// the mapping sets no option, and the last options when these are the same: zones of one customer
/// stand together.
std::uint32_t derive_options(const Value& value, Members& members, std::uint32_t base) {
  ZoneTable& zones = value.context().settings.zones;
  ZoneOptions options = changed_options(value, members, base);
  if (options == zones.options()[base]) return base;
  if (options == zones.options().back())
    return static_cast<std::uint32_t>(zones.options().size() - 1);
  return zones.add_options(std::move(options));
}

/// Warns of a pattern outside the zone: it can never match, so a name is probably mistyped.
void warn_of_outside_names(const Value& value, dns::NameView zone, const zone::Acl& acl) {
  for (const zone::AclRule& rule : acl)
    for (const dns::Name& name : rule.names)
      if (!name.view().is_at_or_below(zone) && !zone::is_about_key(name.view()))
        value.warn(fmt::format("'{}' in allow-update is outside the zone", dns::to_text(name)));
}

void read_zone(const Value& value) {
  Members members(value);
  if (!value.node().is_mapping()) return;
  Context& context = value.context();
  const std::size_t errors_before = context.problems.error_count();
  ZoneHead head;
  read_members(value, members, kZoneHeadFields, head);
  const std::uint32_t base =
      head.template_name.empty() ? context.default_options : context.templates[head.template_name];
  const std::uint32_t options = derive_options(value, members, base);
  if (context.problems.error_count() != errors_before) return;
  if (auto added = add_zone(context, head.name, head.file, options); !added)
    value.fail(added.error().text);
  if (options != base)
    warn_of_outside_names(value, head.name, context.settings.zones.options()[options].allow_update);
}

}  // namespace

TemplateReader::TemplateReader(const std::optional<Value>& list) : list_(list) {
  if (!list_ || list_->is_null()) return;
  list_->for_each([this](const Value& value) { add(value); });
  // The options of "default" are the base of all others.
  std::stable_partition(pending_.begin(), pending_.end(),
                        [](const auto& pending) { return pending->name == kDefaultTemplate; });
}

void TemplateReader::add(const Value& value) {
  auto pending = std::make_unique<Pending>(value);
  if (!value.node().is_mapping()) return;
  TemplateHead head;
  read_members(value, pending->members, kTemplateHeadFields, head);
  if (head.name.empty()) return;
  if (!value.context().templates.emplace(head.name, 0).second)
    return value.fail(fmt::format("a template '{}' is there already", head.name));
  pending->name = std::move(head.name);
  pending_.push_back(std::move(pending));
}

void TemplateReader::read_options() {
  for (const auto& pending : pending_) {
    Context& context = pending->value.context();
    const std::uint32_t options =
        derive_options(pending->value, pending->members, context.default_options);
    context.templates[pending->name] = options;
    if (pending->name == kDefaultTemplate) context.default_options = options;
  }
}

std::uint32_t read_zone_options(const Value& value, std::uint32_t base) {
  Members members(value);
  if (!value.node().is_mapping()) return base;
  ZoneTable& zones = value.context().settings.zones;
  ZoneOptions options = changed_options(value, members, base);
  return options == zones.options()[base] ? base : zones.share_options(std::move(options));
}

void read_zones(const Value& value) {
  if (!value.is_null()) value.for_each(read_zone);
}

void add_catalog_zones(Context& context) {
  ZoneTable& zones = context.settings.zones;
  for (const Catalog& catalog : context.settings.catalogs) {
    const auto own = catalog.produces() ? context.templates.find(catalog.template_name)
                                        : context.templates.end();
    ZoneOptions options =
        zones.options()[own == context.templates.end() ? context.default_options : own->second];
    options.primaries = catalog.primaries;
    options.allow_query = options.allow_transfer;
    options.allow_update.clear();
    options.export_interval.reset();
    options.forward_updates = false;
    options.dnssec.clear();
    options.verify_command.clear();  // of the members' zones: a catalog is no zone to serve
    options.catalog.reset();
    options.catalog_group.clear();
    const std::string file =
        catalog.produces() ? produced_catalog_path(context.settings.store.journal, catalog.zone)
                           : std::string();
    if (auto added = add_zone(context, catalog.zone, file, zones.add_options(std::move(options)));
        !added)
      context.problems.error(context.file, 0, "catalogs", added.error().text);
  }
}

Status add_zone(Context& context, dns::NameView name, std::string_view file, std::uint32_t options,
                bool added) {
  ZoneTable& zones = context.settings.zones;
  if (file.empty() && !zones.options()[options].is_secondary())
    return fail(Errc::kInvalid, "zone {} has neither 'file' nor 'primaries'", dns::to_text(name));
  if (zones.options()[options].is_secondary() && zones.options()[options].export_interval)
    return fail(Errc::kInvalid,
                "zone {} is secondary, its copy needs no 'export-interval' (it may be 'off')",
                dns::to_text(name));
  return zones.add(name, file, options, added);
}

}  // namespace pando::config
