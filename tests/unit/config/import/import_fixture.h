#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "config/import/import.h"
#include "config/load.h"

namespace pando::config {

/// Imports a text and loads the result: the loader has to accept all that an importer writes.
struct Imported {
  ImportOutcome outcome;
  Settings settings;

  [[nodiscard]] std::string report() const {
    std::string text;
    for (const Omission& omission : outcome.omissions) text += to_text(omission) + "\n";
    return text;
  }
  /// Lines of the report that change answers.
  [[nodiscard]] std::string changes() const {
    std::string text;
    for (const Omission& omission : outcome.omissions)
      if (omission.effect == ImportEffect::kAnswers) text += to_text(omission) + "\n";
    return text;
  }
  [[nodiscard]] const ZoneOptions& options(std::string_view zone) const {
    const auto index = settings.zones.find(*dns::Name::from_text(zone));
    static const ZoneOptions kNone;
    EXPECT_TRUE(index.has_value()) << zone << "\n" << report();
    return index ? *settings.zones[*index].options : kNone;
  }
  [[nodiscard]] std::string file(std::string_view zone) const {
    const auto index = settings.zones.find(*dns::Name::from_text(zone));
    return index ? settings.zones.path(*index) : "no zone";
  }
};

inline Imported load_imported(ImportOutcome outcome) {
  LoadResult loaded = load_text(outcome.yaml, "/etc/pando/p.yaml",
                                {.read_zone_lists = false, .read_key_files = false});
  EXPECT_EQ(loaded.error_text(), "") << outcome.yaml;
  return {std::move(outcome), std::move(loaded.settings)};
}

inline Imported imported(ImportKind kind, std::string_view text, bool with_secrets = true) {
  auto outcome = import_text(std::string(text), "/etc/x/x.conf",
                             {.kind = kind, .with_secrets = with_secrets, .with_includes = false});
  EXPECT_TRUE(outcome.has_value()) << outcome.error().text;
  return outcome ? load_imported(std::move(*outcome)) : Imported{};
}

inline std::string import_error(ImportKind kind, std::string_view text) {
  const auto outcome =
      import_text(std::string(text), "/x.conf", {.kind = kind, .with_includes = false});
  return outcome ? "no error" : outcome.error().text;
}

/// "allow 192.0.2.0/24", "deny ::/0 k.": one word list for each rule.
inline std::vector<std::string> rule_words(const zone::Acl& acl) {
  std::vector<std::string> words;
  for (const zone::AclRule& rule : acl) {
    std::string text = rule.deny ? "deny" : "allow";
    constexpr std::uint8_t kHost = 128;
    if (rule.address)
      text += " " + (rule.address->length == kHost ? to_text(rule.address->address)
                                                   : to_text(*rule.address));
    if (rule.key) text += " " + dns::to_text(*rule.key);
    for (const dns::Name& name : rule.names) text += " @" + dns::to_text(name);
    for (const dns::RRType type : rule.types) text += " " + dns::to_text(type);
    words.push_back(text);
  }
  return words;
}

}  // namespace pando::config
