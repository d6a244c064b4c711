#include <cstdint>
#include <string>
#include <string_view>

#include "dns/name.h"
#include "dns/wire_name.h"

// Octet 0 chooses: a name as text, or a message with a compressed name at the place octet 1 says.

namespace {

using namespace pando;
using namespace pando::dns;

void must_read_back(NameView name) {
  PANDO_ASSERT(wire_name_length(name.bytes()) == name.size());
  auto back = Name::from_text(to_text(name));
  PANDO_ASSERT(back && std::equal(name.data(), name.data() + name.size(), back->data()) &&
               back->size() == name.size());
  PANDO_ASSERT(compare_canonical(name, back->folded()) == 0);
  PANDO_ASSERT(name == back->folded().view() && hash_name(name) == hash_name(back->folded()));
  const std::size_t labels = name.label_count();
  PANDO_ASSERT(labels <= kMaxLabels && name.ancestor(labels).is_root());
  PANDO_ASSERT(name.is_at_or_below(name.parent()));
}

void try_text(std::string_view text) {
  static constexpr std::uint8_t kOrigin[] = {1, 'o', 0};
  const NameView origin(kOrigin, sizeof kOrigin);
  if (auto name = Name::from_text(text, origin)) must_read_back(*name);
}

void try_message(ByteView message, std::size_t at) {
  std::uint8_t expanded[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(message, at, expanded, size);
  if (!behind) return;
  PANDO_ASSERT(*behind > at && *behind <= message.size());
  must_read_back(NameView(expanded, size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  if (data[0] % 2 == 0)
    try_text({reinterpret_cast<const char*>(data + 1), size - 1});
  else
    try_message({data + 2, size - 2}, data[1]);
  return 0;
}
