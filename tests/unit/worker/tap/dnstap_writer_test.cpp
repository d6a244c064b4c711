#include "worker/tap/dnstap_writer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "ipc/frame_stream.h"
#include "tests/unit/worker/tap/lent_stream.h"

namespace pando::worker {
namespace dnstap_writer_test {

constexpr std::uint8_t kQuery = 0;
constexpr std::uint8_t kResponse = 0x80;
constexpr std::uint8_t kUpdate = 5 << 3;

Bytes message(std::uint8_t flags, std::size_t octets = 12) {
  Bytes made(octets, 0);
  made[2] = flags;
  return made;
}

ipc::Dnstap all_messages(std::uint32_t sample = 1) {
  return {true, sample, true, true, true, "ns", "v"};
}

class DnstapWriterTest : public LentStreamTest {
 protected:
  void write(const Bytes& octets) { writer_.write({}, octets, {}); }
  /// Frames that have come as a whole; a control frame counts as none.
  [[nodiscard]] std::size_t frames() const {
    std::size_t count = 0;
    for (std::size_t at = 0; at + 4 <= received_.size();) {
      const std::size_t length = load_be32(received_.data() + at);
      if (length == 0 || at + 4 + length > received_.size()) break;
      at += 4 + length;
      ++count;
    }
    return count;
  }

  int lost_ = 0;
  DnstapWriter writer_{
      io_,
      {[this](std::uint64_t frames, std::uint64_t dropped) { count(frames, dropped); },
       [this] { ++lost_; }}};
};

TEST_F(DnstapWriterTest, IsOffAtFirst) {
  EXPECT_FALSE(writer_.on());
  write(message(kQuery));
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(DnstapWriterTest, FewFramesGoOutByThemselves) {
  writer_.set(all_messages(), stream());
  write(message(kQuery));
  write(message(kResponse));
  writer_.answers_sent();
  EXPECT_TRUE(run_until([&] { return frames() == 2; }));
  EXPECT_EQ(sent_, 2U);
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(DnstapWriterTest, ManyFramesGoOutBehindTheAnswers) {
  writer_.set(all_messages(), stream());
  for (int i = 0; i < 40; ++i) write(message(kResponse, 1000));
  read();
  EXPECT_EQ(frames(), 0U) << "nothing is sent before the answers";
  writer_.answers_sent();
  read();
  EXPECT_EQ(frames(), 40U);
}

TEST_F(DnstapWriterTest, WithoutAStreamMessagesAreCountedAsDropped) {
  writer_.set(all_messages(), {});
  EXPECT_TRUE(writer_.on());
  write(message(kQuery));
  write(message(kQuery));
  EXPECT_EQ(dropped_, 2U);
  EXPECT_EQ(sent_, 0U);
}

TEST_F(DnstapWriterTest, ACollectorThatDoesNotReadCostsWholeFramesOnly) {
  writer_.set(all_messages(), stream());
  constexpr std::uint64_t kFrames = 2000;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    write(message(kResponse, 1000));
    writer_.answers_sent();
  }
  EXPECT_GT(dropped_, 0U);
  EXPECT_EQ(lost_, 0);
  const std::uint64_t held = kFrames - dropped_;
  EXPECT_TRUE(run_until([&] { return frames() == held; })) << frames() << " of " << held;
  EXPECT_EQ(sent_, held);
  write(message(kQuery));
  EXPECT_TRUE(run_until([&] { return frames() == held + 1; })) << "the stream goes on";
}

TEST_F(DnstapWriterTest, TheEndOfACollectorIsSeenWithoutAMessage) {
  writer_.set(all_messages(), stream());
  reader_.reset();
  EXPECT_TRUE(run_until([&] { return lost_ == 1; }));
  write(message(kQuery));
  EXPECT_EQ(dropped_, 1U);
}

TEST_F(DnstapWriterTest, ACollectorThatTalksIsLost) {
  writer_.set(all_messages(), stream());
  write(message(kQuery));
  ASSERT_EQ(::send(reader_.get(), "GET / HTTP/1.1", 14, 0), 14);
  EXPECT_TRUE(run_until([&] { return lost_ == 1; }));
  EXPECT_EQ(sent_ + dropped_, 1U);
}

TEST_F(DnstapWriterTest, FramesOfABrokenStreamCountAsDropped) {
  writer_.set(all_messages(), stream());
  for (int i = 0; i < 100; ++i) write(message(kResponse, 1000));
  reader_.reset();
  writer_.answers_sent();
  EXPECT_EQ(lost_, 1);
  EXPECT_EQ(sent_ + dropped_, 100U);
  EXPECT_GT(dropped_, 0U);
}

TEST_F(DnstapWriterTest, SwitchingOffSendsTheRestAndStop) {
  writer_.set(all_messages(), stream());
  write(message(kQuery));
  writer_.set({}, {});
  EXPECT_FALSE(writer_.on());
  read();
  const Bytes stop = ipc::control_frame(ipc::FrameControl::kStop, {});
  EXPECT_EQ(frames(), 1U);
  ASSERT_GT(received_.size(), stop.size());
  EXPECT_TRUE(std::equal(stop.begin(), stop.end(), received_.end() - 12));
  EXPECT_TRUE(has_stream_ended());
  EXPECT_EQ(lost_, 0);
  EXPECT_EQ(sent_, 1U);
}

TEST_F(DnstapWriterTest, ANewStreamReplacesTheOneBefore) {
  writer_.set(all_messages(), stream());
  write(message(kQuery));
  const Fd first = std::move(reader_);
  writer_.set(all_messages(), stream());
  write(message(kResponse));
  EXPECT_TRUE(run_until([&] { return frames() == 1; }));
  EXPECT_EQ(sent_, 2U);
  EXPECT_EQ(lost_, 0) << "the end of the first stream is no loss";
}

TEST_F(DnstapWriterTest, NewSettingsKeepTheStream) {
  writer_.set(all_messages(), stream());
  writer_.set(all_messages(3), {});
  write(message(kQuery));
  EXPECT_TRUE(run_until([&] { return frames() == 1; }));
}

TEST_F(DnstapWriterTest, OneRequestInNIsTaken) {
  writer_.set(all_messages(10), stream());
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += writer_.takes(message(kQuery)) ? 1 : 0;
  EXPECT_EQ(taken, 100);
}

TEST_F(DnstapWriterTest, ResponsesAndFragmentsAreNoRequests) {
  writer_.set(all_messages(), stream());
  EXPECT_FALSE(writer_.takes(message(kResponse)));
  EXPECT_FALSE(writer_.takes(Bytes(11, 0)));
  EXPECT_FALSE(writer_.takes(Bytes()));
  EXPECT_TRUE(writer_.takes(message(kQuery)));
}

TEST_F(DnstapWriterTest, OnlyWantedMessagesAreWritten) {
  writer_.set({true, 1, false, true, false, "", ""}, stream());  // responses
  EXPECT_TRUE(writer_.takes(message(kQuery))) << "for the sake of its response";
  EXPECT_FALSE(writer_.takes(message(kUpdate)));
  write(message(kQuery));
  write(message(kUpdate));
  write(message(kUpdate | kResponse));
  write(message(kResponse));
  writer_.set({true, 1, false, false, true, "", ""}, {});  // updates
  EXPECT_FALSE(writer_.takes(message(kQuery)));
  EXPECT_TRUE(writer_.takes(message(kUpdate)));
  write(message(kUpdate));
  write(message(kResponse));
  EXPECT_TRUE(run_until([&] { return frames() == 2; }));
  EXPECT_EQ(sent_ + dropped_, 2U);
}

TEST_F(DnstapWriterTest, NothingFromTheManagerMakesASampleOfNone) {
  writer_.set(all_messages(0), stream());
  EXPECT_TRUE(writer_.takes(message(kQuery)));
}

}  // namespace dnstap_writer_test
}  // namespace pando::worker
