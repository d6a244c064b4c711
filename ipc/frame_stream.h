#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

/// Frame Streams, the protocol by which dnstap messages go to a collector (fstrm/control.h of
/// libfstrm describes it). A data frame is its length (32 bits, big-endian) and its octets. The
/// length 0 announces a control frame: a second length, the type (32 bits), and fields. The manager
/// opens a stream by READY, ACCEPT and START. A worker ends it by STOP.
namespace pando::ipc {

inline constexpr std::string_view kDnstapContentType = "protobuf:dnstap.Dnstap";
inline constexpr std::size_t kFrameHeaderOctets = 4;
/// Longest control frame after its two lengths (FSTRM_CONTROL_FRAME_LENGTH_MAX).
inline constexpr std::size_t kMaxControlOctets = 512;

enum class FrameControl : std::uint32_t {
  kAccept = 1,
  kStart = 2,
  kStop = 3,
  kReady = 4,
  kFinish = 5,
};

/// A whole control frame; `content_type` empty: without that field.
[[nodiscard]] Bytes control_frame(FrameControl type, std::string_view content_type);

/// Octets of the control frame at the front of `octets`, its lengths included; 0 while they are too
/// few to tell. kInvalid when no control frame stands there, or one of more than kMaxControlOctets.
Result<std::size_t> control_frame_size(ByteView octets);

/// Checks that `frame`, a whole control frame, is an ACCEPT of `content_type`.
Status check_accept(ByteView frame, std::string_view content_type);

}  // namespace pando::ipc
