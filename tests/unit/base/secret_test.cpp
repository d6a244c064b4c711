#include "base/secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/build.h"
#include "base/fd.h"

namespace pando {
namespace secret_test {

constexpr std::string_view kText = "the most secret text of all, and then some more of it";

/// Whether the end of the text is at a place of this process, which may have been freed. Allocates
/// nothing: that might take just this place.
bool has_text(const char* place) {
  const Fd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  std::array<char, kText.size()> bytes{};
  const auto got = ::pread(memory.get(), bytes.data(), bytes.size(),
                           static_cast<off_t>(reinterpret_cast<std::uintptr_t>(place)));
  EXPECT_EQ(got, static_cast<ssize_t>(bytes.size()));
  // The allocator's own links are in the first octets.
  return std::string_view(bytes.data(), bytes.size()).substr(24) == kText.substr(24);
}

TEST(WipeFreed, WipesWhatAnyContainerFreesMeanwhile) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have their own operator delete";
  const char* inside = nullptr;
  const char* after = nullptr;
  {
    const WipeFreed wipe_freed;
    const auto text = std::make_unique<std::string>(kText);
    inside = text->data();
  }
  EXPECT_FALSE(has_text(inside));
  {
    const auto text = std::make_unique<std::string>(kText);
    after = text->data();
  }
  EXPECT_TRUE(has_text(after)) << "only meanwhile";
}

TEST(WipeFreed, CoversTheEndOfASharedSecret) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have their own operator delete";
  std::shared_ptr<const std::string> shared;
  {
    const WipeFreed wipe_freed;
    shared = share_secret(std::string(kText));
  }
  const char* inside = shared->data();
  EXPECT_TRUE(has_text(inside));
  shared.reset();
  EXPECT_FALSE(has_text(inside));
}

}  // namespace secret_test
}  // namespace pando
