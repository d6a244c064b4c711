#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"

namespace pando::worker {

/// Frames that a stream has not taken yet, in their order on the wire. A frame is held as a whole
/// or not at all, so the reader never meets a part of one.
class FrameBuffer {
 public:
  enum class Form : std::uint8_t {
    kLengths,  ///< each frame stands after its length (ipc/frame_stream.h)
    kLines,    ///< each frame is a line, which ends with its only newline
  };

  /// `most`: octets that may wait, lengths included.
  explicit FrameBuffer(std::size_t most, Form form = Form::kLengths);

  /// Adds the frame that `parts` make up; false when there is no room for it.
  bool push(std::initializer_list<ByteView> parts);
  /// Octets to send next; empty when nothing waits.
  [[nodiscard]] ByteView waiting() const noexcept;
  /// The stream has taken the first `octets` of waiting(). Returns the number of frames whose last
  /// octet was among them.
  std::size_t take(std::size_t octets) noexcept;
  /// Number of frames that the stream has not taken as a whole.
  [[nodiscard]] std::size_t frames() const noexcept { return frames_; }
  /// True when the stream has taken a part of the first frame.
  [[nodiscard]] bool is_within_frame() const noexcept { return begin_ != frame_begin_; }
  void clear() noexcept;

 private:
  [[nodiscard]] std::size_t first_size() const noexcept;

  std::size_t most_;
  Form form_;
  std::size_t header_;           ///< octets before each frame
  Bytes octets_;                 ///< twice as long as `most_`, so that octets are moved rarely
  std::size_t frame_begin_ = 0;  ///< of the first frame that is not taken as a whole
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t frames_ = 0;
};

}  // namespace pando::worker
