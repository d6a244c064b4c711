#include "manager/systemd/kept_socket.h"

#include <gtest/gtest.h>

namespace pando::manager::systemd {

TEST(KeptSocketName, ANameTellsWhatItWasMadeFrom) {
  const KeptSocket socket{7, 2, 0xFFFFFFFFFFFFFFFF};
  EXPECT_EQ(to_text(socket), "worker-7-2-18446744073709551615");
  EXPECT_EQ(kept_socket_of(to_text(socket)), socket);
}

TEST(KeptSocketName, AnotherNameIsASocketUnits) {
  for (const char* name : {"", "pando.socket", "unknown", "stored", "worker", "worker-1-2",
                           "worker-1-2-3-4", "worker-1-2-3 ", "worker--1-2-3", "worker-1-x-3",
                           "worker-4294967296-0-1", "worker-1-2-18446744073709551616"})
    EXPECT_FALSE(kept_socket_of(name)) << name;
}

}  // namespace pando::manager::systemd
