#include "manager/net/address_claims.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace pando::manager {
namespace address_claims_test {

using ::testing::HasSubstr;

const Endpoint kAddress = Endpoint::from_text("192.0.2.53@5353").value();

/// A child process that has done `act` and stays until it is ended.
class Child {
 public:
  template <class Act>
  explicit Child(const Act& act) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const char done = act() ? 'y' : 'n';
      (void)!::write(ends[1], &done, 1);
      for (;;) ::pause();
    }
    char done = 0;
    worked_ = ::read(ends[0], &done, 1) == 1 && done == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] bool worked() const { return worked_; }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  int pid_ = 0;
  bool worked_ = false;
};

TEST(AddressClaims, AnotherManagersAddressIsRefusedUntilThatOneEnds) {
  AddressClaims theirs;
  Child other([&] { return theirs.claim(kAddress).has_value(); });
  ASSERT_TRUE(other.worked());
  AddressClaims ours;
  for (int again = 0; again < 3; ++again) {
    const Status claimed = ours.claim(kAddress);
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().code, Errc::kExists);
    EXPECT_THAT(claimed.error().text, HasSubstr(fmt::format("process {}", other.pid())));
  }
  EXPECT_TRUE(ours.claim(Endpoint::from_text("192.0.2.53@5354").value()));
  other.end();
  EXPECT_TRUE(ours.claim(kAddress));
}

TEST(AddressClaims, AReleasedAddressIsFree) {
  AddressClaims ours;
  ASSERT_TRUE(ours.claim(kAddress));
  ours.release(kAddress);
  Child other([&] { return AddressClaims().claim(kAddress).has_value(); });
  EXPECT_TRUE(other.worked());
}

/// The successor in a take-over may come while this process still ends.
TEST(AddressClaims, AllAreReleasedAtOnce) {
  AddressClaims ours;
  ASSERT_TRUE(ours.claim(kAddress));
  ours.release_all();
  Child other([&] { return AddressClaims().claim(kAddress).has_value(); });
  EXPECT_TRUE(other.worked());
}

TEST(AddressClaims, AStrangersSocketOfThatNameKeepsNoAddressFromBeingServed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be a stranger";
  Child stranger([] {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "pando/serves/0/192.0.2.53@5353";
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::setuid(65534) == 0 &&
           ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
           ::listen(socket, 1) == 0;
  });
  ASSERT_TRUE(stranger.worked());
  EXPECT_TRUE(AddressClaims().claim(kAddress));
}

}  // namespace address_claims_test
}  // namespace pando::manager
