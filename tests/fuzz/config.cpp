#include <array>
#include <cstdlib>

#include "config/load.h"

namespace {

constexpr std::array<const char*, 3> kFiles = {"/f.yaml", "/a.yaml", "/b.yaml"};

bool names_a_file(const std::string& error) {
  for (const std::string file : kFiles)
    if (error.starts_with(file + ":")) return true;
  return false;
}

}  // namespace

// Any texts either load or give errors that name their file; never both, never a crash. Octets 0
// part the texts of the first file and of two that it may include.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, kFiles.size()> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i] = i + 1 < texts.size() ? rest.substr(0, rest.find('\0')) : rest;
    rest.remove_prefix(std::min(rest.size(), texts[i].size() + 1));
  }
  const pando::config::FileTexts included{{kFiles[1], std::string(texts[1])},
                                          {kFiles[2], std::string(texts[2])}};
  const auto result = pando::config::load_text(
      texts[0], kFiles[0], {.read_zone_lists = false, .included = &included});
  for (const std::string& error : result.errors)
    if (!names_a_file(error)) std::abort();
  if (!result.ok()) return 0;
  for (std::size_t i = 0; i < result.settings.zones.size(); ++i)
    (void)pando::config::compile(*result.settings.zones[i].options, result.settings);
  return 0;
}
