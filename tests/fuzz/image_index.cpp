// Any octets as the index of an image: refused with an error, or decoded to what is encoded alike.
// An index that agrees with its checksum makes a whole store or none.
//
// Input: one octet of mode, then the index.

#include <xxhash.h>

#include <cstring>

#include "shm/image_format.h"
#include "tests/fuzz/served_zone.h"

namespace {

using namespace pando;

constexpr std::uint8_t kRepairChecksum = 1;  // else most inputs would end there
constexpr std::uint8_t kOwnChunks = 2;       // the chunks' states are those of the store
constexpr std::size_t kChecksumBytes = 8;

const char* const kZone = "@ 300 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n";

void repair(Bytes& index) {
  if (index.size() < kChecksumBytes) return;
  const std::size_t covered = index.size() - kChecksumBytes;
  store_be64(index.data() + covered, XXH3_64bits(index.data(), covered));
}

/// The chunks of a live store, each checked as it is read, as of an image's file of chunks.
class Chunks final : public shm::ImageSource {
 public:
  explicit Chunks(const shm::Window& window, std::size_t chunks)
      : window_(window), chunks_(chunks) {}
  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t checksum) override {
    if (chunk >= chunks_ || into.size() > shm::kChunkBytes)
      return fail(Errc::kCorrupt, "chunk {} is cut off", chunk);
    const ByteView bytes =
        shm::chunk_bytes(window_, chunk, 0, static_cast<std::uint32_t>(into.size()));
    if (shm::chunk_checksum(bytes) != checksum)
      return fail(Errc::kCorrupt, "chunk {} has a wrong checksum", chunk);
    std::memcpy(into.data(), bytes.data(), bytes.size());
    return {};
  }

 private:
  shm::Window window_;
  std::size_t chunks_;
};

/// The store's present version, complete.
shm::ImageState capture(shm::Store& store) {
  shm::ImageState state = store.capture().state;
  for (std::uint32_t n = 0; n < state.chunks.size(); ++n)
    state.chunks[n].checksum =
        shm::chunk_checksum(shm::chunk_bytes(store.window(), n, 0, state.chunks[n].used));
  state.side = shm::side_table(store.window());
  return state;
}

void restore(fuzz::ServedZone& served, const shm::ImageState& whole, const shm::ImageState& state) {
  shm::StoreOptions options;
  options.path = served.path() + ".restored";
  options.size_limit = std::uint64_t{64} << 20;
  options.layout = zone::layout_fingerprint();
  Chunks chunks(served.store().window(), whole.chunks.size());
  const auto store = shm::Store::restore(options, state, chunks);
  PANDO_ASSERT(store || !store.error().text.empty());
  ::unlink(options.path.c_str());
  if (!store) return;
  PANDO_ASSERT(store->current().number == state.version);
  PANDO_ASSERT(store->lineage() == state.lineage);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::ServedZone* const served = new fuzz::ServedZone(kZone);
  static const shm::ImageState whole = capture(served->store());
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  Bytes bytes(data + 1, data + size);
  if ((mode & kRepairChecksum) != 0) repair(bytes);
  const auto head = shm::decode_image_head(bytes);
  static_cast<void>(shm::image_file_of(bytes));
  auto index = shm::decode_image_index(bytes);
  if (!index) return 0;
  PANDO_ASSERT(head && head->file == index->file && head->state.version == index->state.version);
  PANDO_ASSERT(shm::encode_image_index(*index) == bytes);
  if ((mode & kOwnChunks) != 0) {
    index->state.chunks = whole.chunks;
    index->state.root_block = whole.root_block;
  }
  restore(*served, whole, index->state);
  return 0;
}
