#include <cstdlib>

#include "config/load.h"

// Any text either loads or gives errors that name it; never both, never a crash.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = pando::config::load_text(text, "/f.yaml", {.read_zone_lists = false});
  for (const std::string& error : result.errors)
    if (!error.starts_with("/f.yaml:")) std::abort();
  if (!result.ok()) return 0;
  for (std::size_t i = 0; i < result.settings.zones.size(); ++i)
    (void)pando::config::compile(*result.settings.zones[i].options, result.settings);
  return 0;
}
