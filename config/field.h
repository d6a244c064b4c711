#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "config/support.h"
#include "config/value.h"

/// Sections of the configuration as tables: one row per key tells how the key is read, compared and
/// listed. The same rows load files and find changes that a reload cannot apply. A test compares
/// them with docs/reference/configuration.md.
namespace pando::config {

template <class Section>
struct Field {
  std::string_view name;
  Apply apply;
  bool required;
  void (*read)(const Value& value, Section& out);
  bool (*same)(const Section& a, const Section& b);
  /// Appends the keys below this one; null for a plain value.
  void (*list)(const std::string& prefix, std::vector<KeyInfo>& out);
};

template <class M>
struct MemberOf;
template <class S, class T>
struct MemberOf<T S::*> {
  using Section = S;
  using Type = T;
};
template <auto Member>
using SectionOf = typename MemberOf<decltype(Member)>::Section;

template <auto Member>
bool same_member(const SectionOf<Member>& a, const SectionOf<Member>& b) {
  return a.*Member == b.*Member;
}

/// A row for `Member` that `Read(value, member)` fills.
template <auto Member, auto Read>
constexpr Field<SectionOf<Member>> field(std::string_view name, Apply apply = Apply::kLive,
                                         bool required = false) {
  using Section = SectionOf<Member>;
  return {name,
          apply,
          required,
          [](const Value& value, Section& out) { Read(value, out.*Member); },
          &same_member<Member>,
          nullptr};
}

template <class Section, std::size_t N>
void list_fields(const Field<Section> (&table)[N], const std::string& prefix,
                 std::vector<KeyInfo>& out) {
  for (const auto& row : table) {
    const std::string path = prefix + std::string(row.name);
    out.push_back({path, row.apply});
    if (row.list != nullptr) row.list(path, out);
  }
}

/// Reads the keys of one table from `members`.
template <class Section, std::size_t N>
void read_members(const Value& mapping, Members& members, const Field<Section> (&table)[N],
                  Section& out) {
  for (const auto& row : table) {
    const auto value = members.take(row.name);
    if (!value) {
      if (row.required) mapping.fail(fmt::format("'{}' is missing", row.name));
      continue;
    }
    if (value->is_null() && mapping.path().empty())
      continue;  // an empty value such as "zones:" counts as absent
    const std::size_t errors_before = value->context().problems.error_count();
    row.read(*value, out);
    if (value->context().problems.error_count() != errors_before) continue;
    const Support support = support_of(schema_path(value->path()));
    const bool accepted =
        support == Support::kFull || (support == Support::kDefaultOnly && row.same(out, Section{}));
    if (!accepted) value->fail("not supported yet");
  }
}

/// Reads a mapping that has the keys of one table and no others.
template <class Section, std::size_t N>
void read_section(const Value& mapping, const Field<Section> (&table)[N], Section& out) {
  Members members(mapping);
  if (!mapping.node().IsMap()) return;
  read_members(mapping, members, table, out);
  members.finish();
}

/// Target of a nested mapping: an optional section exists once the file mentions it.
template <class T>
T& opened(T& section) {
  return section;
}
template <class T>
T& opened(std::optional<T>& section) {
  return section.emplace();
}

inline constexpr auto no_check = [](const Value&, const auto&) {};

/// A row for a nested mapping; `Check(value, section)` checks the whole when its parts are valid.
template <auto Member, const auto& Table, auto Check = no_check>
constexpr auto nested(std::string_view name, Apply apply = Apply::kLive) {
  constexpr auto read = [](const Value& value, auto& out) {
    auto& section = opened(out);
    const std::size_t errors_before = value.context().problems.error_count();
    read_section(value, Table, section);
    if (value.context().problems.error_count() == errors_before) Check(value, section);
  };
  auto row = field<Member, read>(name, apply);
  row.list = [](const std::string& path, std::vector<KeyInfo>& out) {
    list_fields(Table, path + ".", out);
  };
  return row;
}

/// A row for a list of mappings; `Check(value, list)` runs after each valid element, the last of
/// the list so far.
template <auto Member, const auto& Table, auto Check = no_check>
constexpr auto list_of(std::string_view name, Apply apply = Apply::kLive) {
  constexpr auto read = [](const Value& value, auto& out) {
    out.clear();
    value.for_each([&](const Value& element) {
      const std::size_t errors_before = value.context().problems.error_count();
      read_section(element, Table, out.emplace_back());
      if (value.context().problems.error_count() == errors_before) Check(element, out);
    });
  };
  auto row = field<Member, read>(name, apply);
  row.list = [](const std::string& path, std::vector<KeyInfo>& out) {
    list_fields(Table, path + "[].", out);
  };
  return row;
}

}  // namespace pando::config
