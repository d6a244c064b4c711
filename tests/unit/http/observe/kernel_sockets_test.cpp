#include "http/observe/kernel_sockets.h"

#include <gtest/gtest.h>

namespace pando::http {
namespace kernel_sockets_test {

constexpr std::string_view kHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode ref pointer drops             \n";

std::vector<UdpFacts> facts_of(std::string_view table, const std::vector<Endpoint>& listen) {
  std::vector<UdpFacts> facts(listen.size());
  add_udp_rows(table, listen, facts);
  return facts;
}

TEST(KernelSockets, AreAddedUpByTheirAddress) {
  const std::string table =
      std::string(kHead) +
      "  461: 0100007F:14B4 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 "
      "46532 2 0000000000000000 5             \n"
      "  462: 0100007F:14B4 00000000:0000 07 00000000:00000100 00:00000000 00000000     0        0 "
      "46533 2 0000000000000000 7             \n"
      "  463: 0200007F:14B4 00000000:0000 07 00000000:00000100 00:00000000 00000000     0        0 "
      "46534 2 0000000000000000 9             \n";
  const auto facts = facts_of(table, {*Endpoint::from_text("127.0.0.9@53"),
                                      *Endpoint::from_text("127.0.0.1@5300")});
  EXPECT_EQ(facts[0].drops, 0U);
  EXPECT_EQ(facts[1].drops, 12U);
  EXPECT_EQ(facts[1].queued_bytes, 0x400U);
}

TEST(KernelSockets, KnowIPv6) {
  const auto facts = facts_of(
      "  9: B80D0120000000000000000001000000:0035 00000000000000000000000000000000:0000 07 "
      "00000000:00000000 00:00000000 00000000 0 0 4 2 0000000000000000 3\n"
      " 10: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 "
      "00000000:00000000 00:00000000 00000000 0 0 4 2 0000000000000000 4\n",
      {*Endpoint::from_text("2001:db8::1@53"), *Endpoint::from_text("::@53")});
  EXPECT_EQ(facts[0].drops, 3U);
  EXPECT_EQ(facts[1].drops, 4U);
}

TEST(KernelSockets, MalformedRowsArePassedOver) {
  const std::vector<Endpoint> listen{*Endpoint::from_text("127.0.0.1@5300")};
  for (const char* table : {"", "\n\n", "461:", "461: 0100007F:14B4",
                            "461: 0100007F:14B4 0:0 07 0:0 0 0 0 0 0 2 0",
                            "461: 0100007G:14B4 0:0 07 0:1 0 0 0 0 0 2 0 5",
                            "461: 0100007F:14B4 0:0 07 0 0 0 0 0 0 2 0 5",
                            "461: 0100007F:14B4 0:0 07 0:1 0 0 0 0 0 2 0 -5"})
    EXPECT_EQ(facts_of(table, listen)[0].drops, 0U) << table;
}

}  // namespace kernel_sockets_test
}  // namespace pando::http
