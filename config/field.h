#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "config/settings/setting_lines.h"
#include "config/settings/shown_value.h"
#include "config/readers.h"
#include "config/settings/yaml_scalar.h"
#include "config/support.h"
#include "config/value.h"

/// Sections of the configuration as tables: one row per key tells how the key is read, compared,
/// listed and shown. The same rows load files, show settings, and find changes, also those that a
/// reload cannot apply. A test compares them with docs/reference/configuration.md.
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
  /// Writes the key and its value, unless it is absent.
  void (*show)(const Field& row, const Section& section, SettingLines& out);
  /// Appends what differs at this key, or below it. `prefix` is that of the key.
  void (*compare)(const Field& row, const std::string& prefix, const Section& before,
                  const Section& after, SettingChanges& out);
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

inline constexpr auto show_value = [](const auto& value) { return shown(value); };
/// For rows that are no plain value and are shown in another way.
inline constexpr auto show_no_value = [](const auto&) -> Shown { return std::nullopt; };

template <auto Member, auto Show>
void show_member(const Field<SectionOf<Member>>& row, const SectionOf<Member>& section,
                 SettingLines& out) {
  if (const Shown value = Show(section.*Member)) out.add(row.name, *value);
}

template <auto Member, auto Show>
void compare_member(const Field<SectionOf<Member>>& row, const std::string& prefix,
                    const SectionOf<Member>& before, const SectionOf<Member>& after,
                    SettingChanges& out) {
  if (same_member<Member>(before, after)) return;
  out.push_back({prefix + std::string(row.name), Show(before.*Member).value_or(""),
                 Show(after.*Member).value_or(""), row.apply == Apply::kRestart});
}

/// A row for `Member` that `Read(value, member)` fills. `Show` gives its text.
template <auto Member, auto Read, auto Show = show_value>
constexpr Field<SectionOf<Member>> field(std::string_view name, Apply apply = Apply::kLive,
                                         bool required = false) {
  using Section = SectionOf<Member>;
  return {name,
          apply,
          required,
          [](const Value& value, Section& out) { Read(value, out.*Member); },
          &same_member<Member>,
          nullptr,
          &show_member<Member, Show>,
          &compare_member<Member, Show>};
}

/// A row for a value that nobody may see.
template <auto Member, auto Read>
constexpr Field<SectionOf<Member>> secret_field(std::string_view name,
                                                Apply apply = Apply::kLive) {
  using Section = SectionOf<Member>;
  auto row = field<Member, Read, [](const auto& value) -> Shown {
    if (value.empty()) return std::nullopt;
    return std::string(kHiddenValue);
  }>(name, apply);
  row.show = [](const Field<Section>& shown_row, const Section& section, SettingLines& out) {
    if ((section.*Member).empty()) return;
    out.add_comment(fmt::format("{}: {}", shown_row.name, kHiddenValue));
  };
  return row;
}

/// A row that reads the value of the row before it in another way, and shows nothing.
template <auto Member, auto Read>
constexpr Field<SectionOf<Member>> other_form(std::string_view name, Apply apply = Apply::kLive) {
  using Section = SectionOf<Member>;
  auto row = secret_field<Member, Read>(name, apply);
  row.show = [](const Field<Section>&, const Section&, SettingLines&) {};
  row.compare = [](const Field<Section>&, const std::string&, const Section&, const Section&,
                   SettingChanges&) {};
  return row;
}

/// A row for an enumeration with a table of its words.
template <auto Member, const auto& Words>
constexpr auto word_field(std::string_view name, Apply apply = Apply::kLive,
                          bool required = false) {
  return field<Member, read_word<Words>, [](const auto& value) -> Shown {
    for (const auto& [word, meaning] : Words)
      if (meaning == value) return yaml_scalar(word);
    return std::nullopt;
  }>(name, apply, required);
}

/// A row for a list of words of such a table.
template <auto Member, const auto& Words>
constexpr auto word_list_field(std::string_view name, Apply apply = Apply::kLive) {
  return field<Member, read_words<Words>, [](const auto& value) -> Shown {
    return flow_list(value, [](const auto wanted) {
      for (const auto& [word, meaning] : Words)
        if (meaning == wanted) return std::string(word);
      return std::string();
    });
  }>(name, apply);
}

/// A row for a number of bytes.
template <auto Member, std::uint64_t Min, std::uint64_t Max>
constexpr auto size_field(std::string_view name, Apply apply = Apply::kLive) {
  return field<Member, read_size_in<Min, Max>, shown_size>(name, apply);
}

/// Writes the keys of one table that are not absent.
template <class Section, std::size_t N>
void show_fields(const Field<Section> (&table)[N], const Section& section, SettingLines& out) {
  for (const auto& row : table) row.show(row, section, out);
}

template <class Section, std::size_t N>
void compare_fields(const Field<Section> (&table)[N], const std::string& prefix,
                    const Section& before, const Section& after, SettingChanges& out) {
  for (const auto& row : table) row.compare(row, prefix, before, after, out);
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
    if (value->is_null() && mapping.is_root())
      continue;  // an empty value such as "zones:" counts as absent
    // A path is made for the few keys that may need it.
    const Support support =
        may_lack_support(row.name) ? support_of(schema_path(value->path())) : Support::kFull;
    // Told before mistakes in its value, which nobody need mend then.
    if (support == Support::kNone) value->fail("not supported yet");
    const std::size_t errors_before = value->context().problems.error_count();
    row.read(*value, out);
    if (value->context().problems.error_count() != errors_before) continue;
    if (support == Support::kDefaultOnly && !row.same(out, Section{}))
      value->fail("not supported yet");
  }
}

/// Reads a mapping that has the keys of one table and no others.
template <class Section, std::size_t N>
void read_section(const Value& mapping, const Field<Section> (&table)[N], Section& out) {
  Members members(mapping);
  if (!mapping.node().is_mapping()) return;
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

/// A section that exists with defaults alone is written as this.
inline constexpr std::string_view kEmptySection = "{}";
template <class T>
inline constexpr bool kMayBeAbsent = false;
template <class T>
inline constexpr bool kMayBeAbsent<std::optional<T>> = true;

/// The nested mapping, or null where there is none.
template <class T>
const T* existing(const T& section) {
  return &section;
}
template <class T>
const T* existing(const std::optional<T>& section) {
  return section ? &*section : nullptr;
}

inline constexpr auto no_check = [](const Value&, const auto&) {};

/// A nested mapping that is absent on one side is compared with the defaults.
template <class Section, std::size_t N>
void compare_nested(const Field<Section> (&table)[N], const std::string& prefix,
                    const Section* before, const Section* after, SettingChanges& out) {
  static const Section kDefaults{};
  compare_fields(table, prefix, before != nullptr ? *before : kDefaults,
                 after != nullptr ? *after : kDefaults, out);
}

/// Elements of lists belong together if the first key, which is a name, has the same value.
template <class Section, std::size_t N>
void compare_lists(const Field<Section> (&table)[N], const std::string& path,
                   const std::vector<Section>& before, const std::vector<Section>& after,
                   SettingChanges& out) {
  const auto name_of = [&](const Section& element) {
    SettingLines line;
    table[0].show(table[0], element, line);
    const std::string& text = line.text();  // "name: VALUE\n"
    const std::size_t begin = table[0].name.size() + 2;
    return text.size() > begin ? text.substr(begin, text.size() - begin - 1) : std::string();
  };
  const auto find_in = [&](const std::vector<Section>& list, const Section& other) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Section& element) {
      return table[0].same(element, other);
    });
    return found == list.end() ? nullptr : &*found;
  };
  const auto prefix = [&](const Section& element) {
    return fmt::format("{}[{}].", path, name_of(element));
  };
  const Section* const none = nullptr;
  for (const Section& element : before)
    compare_nested(table, prefix(element), &element, find_in(after, element), out);
  for (const Section& element : after)
    if (find_in(before, element) == nullptr)
      compare_nested(table, prefix(element), none, &element, out);
}

/// A row for a nested mapping; `Check(value, section)` checks the whole when its parts are valid.
template <auto Member, const auto& Table, auto Check = no_check>
constexpr auto nested(std::string_view name, Apply apply = Apply::kLive) {
  constexpr auto read = [](const Value& value, auto& out) {
    auto& section = opened(out);
    const std::size_t errors_before = value.context().problems.error_count();
    read_section(value, Table, section);
    if (value.context().problems.error_count() == errors_before) Check(value, section);
  };
  auto row = field<Member, read, show_no_value>(name, apply);
  row.list = [](const std::string& path, std::vector<KeyInfo>& out) {
    list_fields(Table, path + ".", out);
  };
  using Section = SectionOf<Member>;
  row.show = [](const Field<Section>& shown_row, const Section& section, SettingLines& out) {
    const auto* nested_section = existing(section.*Member);
    if (nested_section == nullptr) return;
    SettingLines probe;  // a key without keys below it would have no value
    show_fields(Table, *nested_section, probe);
    if (probe.text().empty() && kMayBeAbsent<typename MemberOf<decltype(Member)>::Type>)
      return out.add(shown_row.name, std::string(kEmptySection));
    if (probe.text().empty()) return;
    out.open(shown_row.name);
    show_fields(Table, *nested_section, out);
    out.close();
  };
  row.compare = [](const Field<Section>& compared, const std::string& prefix,
                   const Section& before, const Section& after, SettingChanges& out) {
    const auto* const old_section = existing(before.*Member);
    const auto* const new_section = existing(after.*Member);
    const std::size_t changes_before = out.size();
    compare_nested(Table, fmt::format("{}{}.", prefix, compared.name), old_section, new_section,
                   out);
    // With defaults alone the section's being there is all of the change.
    const bool is_both_or_none = (old_section == nullptr) == (new_section == nullptr);
    if (out.size() != changes_before || is_both_or_none) return;
    const auto text = [](const auto* section) {
      return section == nullptr ? std::string() : std::string(kEmptySection);
    };
    out.push_back({prefix + std::string(compared.name), text(old_section), text(new_section),
                   compared.apply == Apply::kRestart});
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
  auto row = field<Member, read, show_no_value>(name, apply);
  row.list = [](const std::string& path, std::vector<KeyInfo>& out) {
    list_fields(Table, path + "[].", out);
  };
  using Section = SectionOf<Member>;
  row.show = [](const Field<Section>& shown_row, const Section& section, SettingLines& out) {
    if ((section.*Member).empty()) return out.add(shown_row.name, "[]");
    out.open(shown_row.name);
    for (const auto& element : section.*Member) {
      out.open_element();
      show_fields(Table, element, out);
      out.close();
    }
    out.close();
  };
  row.compare = [](const Field<Section>& compared, const std::string& prefix,
                   const Section& before, const Section& after, SettingChanges& out) {
    compare_lists(Table, fmt::format("{}{}", prefix, compared.name), before.*Member,
                  after.*Member, out);
  };
  return row;
}

}  // namespace pando::config
