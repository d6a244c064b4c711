#include "shm/image_format.h"

#include <gmock/gmock.h>

#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace image_format_test {

using test::must;
using ::testing::HasSubstr;

ImageIndex example() {
  ImageIndex index;
  index.layout = 0x1122334455667788;
  index.owner = {0xAAAA, 0xBBBB};
  index.file = 42;
  index.written = 1'700'000'000;
  index.configuration = 77;
  index.state.version = 9;
  index.state.journal_position = 1000;
  index.state.lineage = 5;
  index.state.root_block = 13;
  index.state.chunks = {{3, 4096, 0xDEADBEEF}, {0, 0, 0}, {1, 100, 7}, {0, 0, 0}};
  index.state.side = {{2, Bytes(kImageSideBytes, 0xAB)}};
  return index;
}

std::string fault(const Result<ImageIndex>& index) { return index ? "" : index.error().text; }

void expect_same_head(const ImageIndex& found, const ImageIndex& expected) {
  EXPECT_EQ(found.layout, expected.layout);
  EXPECT_EQ(found.owner, expected.owner);
  EXPECT_EQ(found.file, expected.file);
  EXPECT_EQ(found.written, expected.written);
  EXPECT_EQ(found.configuration, expected.configuration);
}

TEST(ImageFormat, AnIndexIsReadAsItWasWritten) {
  const ImageIndex read = must(decode_image_index(encode_image_index(example())));
  expect_same_head(read, example());
  EXPECT_EQ(read.state, example().state);
}

TEST(ImageFormat, TheHeadAloneHasAllButChunksAndSideTable) {
  const Bytes bytes = encode_image_index(example());
  const ImageIndex head = must(decode_image_head(ByteView(bytes).first(kImageHeadBytes)));
  expect_same_head(head, example());
  ImageState state = example().state;
  state.chunks.clear();
  state.side.clear();
  EXPECT_EQ(head.state, state);
}

TEST(ImageFormat, OneFlippedBitAnywhereIsNoticed) {
  ImageIndex index = example();
  index.state.side.clear();
  const Bytes whole = encode_image_index(index);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes bytes = whole;
    bytes[at] ^= 0x10;
    EXPECT_FALSE(decode_image_index(bytes)) << at;
  }
}

TEST(ImageFormat, AnIndexThatIsCutOffIsCorrupt) {
  ImageIndex index = example();
  index.state.side.clear();
  const Bytes whole = encode_image_index(index);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto read = decode_image_index(ByteView(whole).first(length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, Errc::kCorrupt) << length;
  }
}

/// The number of the file of chunks has its place in every version, so that old files can go.
TEST(ImageFormat, AnotherVersionIsNamedAndItsFileIsKnown) {
  Bytes bytes = encode_image_index(example());
  store_be32(bytes.data() + 8, kImageVersion + 1);
  const auto head = decode_image_head(bytes);
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().code, Errc::kLayout);
  EXPECT_THAT(fault(head), HasSubstr("of version 2"));
  EXPECT_EQ(image_file_of(bytes), 42U);
}

TEST(ImageFormat, AnyOtherFileIsNoIndex) {
  const Bytes other(200, 'x');
  EXPECT_FALSE(looks_like_image_index(other));
  EXPECT_EQ(image_file_of(other), std::nullopt);
  EXPECT_EQ(fault(decode_image_index(other)), "not an image of a zone store");
  EXPECT_FALSE(looks_like_image_index(ByteView(other).first(3)));
}

TEST(ImageFormat, TheFileOfChunksEndsWithTheLastChunkThatHasContent) {
  const ImageState state = example().state;
  EXPECT_EQ(image_chunks_bytes(state), image_chunk_offset(2) + 100);
  EXPECT_EQ(image_chunks_bytes({}), kImageChunksHeadBytes);
  EXPECT_EQ(image_chunk_offset(0), kChunkBytes) << "the head takes one chunk's length";
  EXPECT_EQ(image_chunks_path("/var/zones.image", 0x2A), "/var/zones.image.000000000000002a");
}

}  // namespace image_format_test
}  // namespace pando::shm
