// Any text as a zone's file of facts: never a crash. Facts that are read survive being written and
// read again, and have a stage at any time.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "manager/signing/keys/signing_facts.h"
#include "manager/signing/signing_stage.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pando::manager;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = parse_signing_facts(text, "facts");
  if (!facts) return 0;
  const auto again = parse_signing_facts(text_of(*facts), "again");
  PANDO_ASSERT(again && *again == *facts);
  std::vector<FolderKey> keys;
  for (const auto* ids : {&facts->roll.old_keys, &facts->roll.new_keys})
    for (const KeyId& id : *ids) keys.push_back({id, id.tag % 2 == 0});
  PANDO_ASSERT(uses_of(keys, facts->roll).size() == keys.size());
  constexpr std::uint64_t kTimes[] = {0, 1'800'000'000, UINT64_MAX};
  for (const std::uint64_t now : kTimes) {
    const SigningState state = signing_state(*facts, keys, {}, now);
    PANDO_ASSERT(!to_text(state.stage).empty());
    PANDO_ASSERT(state.until == 0 || state.until > now);
    PANDO_ASSERT(state.roll.until == 0 || state.roll.until > now);
  }
  return 0;
}
