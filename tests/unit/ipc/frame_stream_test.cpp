#include "ipc/frame_stream.h"

#include <gtest/gtest.h>

namespace pando::ipc {
namespace frame_stream_test {

constexpr std::string_view kType = "a:b";

Bytes accept_of(std::string_view type) { return control_frame(FrameControl::kAccept, type); }

TEST(FrameStream, ControlFramesHaveTheDocumentedOctets) {
  EXPECT_EQ(control_frame(FrameControl::kReady, kType),
            (Bytes{0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 3, 'a', ':', 'b'}));
  EXPECT_EQ(control_frame(FrameControl::kStop, {}),
            (Bytes{0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3}));
}

TEST(FrameStream, TheSizeIsKnownOnceBothLengthsAreThere) {
  const Bytes frame = accept_of(kType);
  for (std::size_t octets = 0; octets < 8; ++octets)
    EXPECT_EQ(control_frame_size(ByteView(frame).first(octets)).value(), 0U) << octets;
  EXPECT_EQ(control_frame_size(ByteView(frame).first(8)).value(), frame.size());
}

TEST(FrameStream, ADataFrameAndAnEndlessOneAreNoControlFrames) {
  EXPECT_FALSE(control_frame_size(Bytes{0, 0, 0, 1, 0, 0, 0, 4}));
  EXPECT_FALSE(control_frame_size(Bytes{'H', 'T', 'T', 'P'}));
  EXPECT_FALSE(control_frame_size(Bytes{0, 0, 0, 0, 0, 0, 2, 1}));
  EXPECT_FALSE(control_frame_size(Bytes{0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}));
  EXPECT_FALSE(control_frame_size(Bytes{0, 0, 0, 0, 0, 0, 0, 3})) << "too short for a type";
}

TEST(FrameStream, AnAcceptNamesTheContentTypeAmongOthersOrNone) {
  EXPECT_TRUE(check_accept(accept_of(kType), kType));
  EXPECT_TRUE(check_accept(accept_of({}), kType));
  Bytes two = accept_of("other");
  two.insert(two.end(), {0, 0, 0, 1, 0, 0, 0, 3, 'a', ':', 'b'});
  store_be32(two.data() + 4, static_cast<std::uint32_t>(two.size() - 8));
  EXPECT_TRUE(check_accept(two, kType));
  const Status refused = check_accept(accept_of("other"), kType);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kDenied);
}

TEST(FrameStream, OtherFramesAndMalformedFieldsAreNoAccept) {
  EXPECT_FALSE(check_accept(control_frame(FrameControl::kFinish, kType), kType));
  Bytes frame = accept_of(kType);
  frame.push_back(0);
  EXPECT_FALSE(check_accept(frame, kType)) << "octets behind the frame";
  frame.pop_back();
  for (const std::size_t place : {15U, 19U}) {  // the field's type, and its length
    Bytes malformed = frame;
    ++malformed[place];
    EXPECT_FALSE(check_accept(malformed, kType)) << place;
  }
  frame.pop_back();
  store_be32(frame.data() + 4, static_cast<std::uint32_t>(frame.size() - 8));
  EXPECT_FALSE(check_accept(frame, kType)) << "the content type is cut";
}

}  // namespace frame_stream_test
}  // namespace pando::ipc
