#include "base/unix_socket.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace pando {
namespace unix_socket_test {

TEST(UnixSocket, APathMayFillTheAddressButForItsEnd) {
  const std::string longest(sizeof(sockaddr_un::sun_path) - 1, 'x');
  const auto address = unix_address(longest);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->sun_family, AF_UNIX);
  EXPECT_EQ(std::string(address->sun_path), longest);
  EXPECT_EQ(unix_address(longest + "x").error().code, Errc::kInvalid);
}

TEST(UnixSocket, AStreamConnectsWhereSomebodyListens) {
  char pattern[] = "/tmp/pando-unix-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  const std::string path = folder + "/socket";
  EXPECT_FALSE(connect_unix_stream(path));
  const auto address = unix_address(path).value();
  const Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  EXPECT_FALSE(connect_unix_stream(path)) << "nobody listens";
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  EXPECT_TRUE(connect_unix_stream(path));
  std::filesystem::remove_all(folder);
}

}  // namespace unix_socket_test
}  // namespace pando
