#include "worker/tap/query_log.h"

#include <algorithm>
#include <utility>

#include "dns/message/message.h"
#include "worker/tap/query_log_line.h"

namespace pando::worker {

/// The manager lends another stream when it is there again, so a lost one needs no report.
QueryLog::QueryLog(asio::io_context& io, Count count)
    : sender_(io, FrameBuffer::Form::kLines, {std::move(count), [] {}}) {}

void QueryLog::set(const ipc::QueryLog& settings, Fd stream) {
  settings_ = settings;
  settings_.sample = std::max(settings_.sample, std::uint32_t{1});
  if (!settings_.on) {
    end();
    sender_.release();
    return;
  }
  if (!stream) return;
  end();
  sender_.open(std::move(stream));
}

/// False for a response, and for a message shorter than a header.
bool QueryLog::takes(ByteView request) noexcept {
  if (request.size() < dns::kHeaderOctets || (request[2] & 0x80U) != 0) return false;
  if (++requests_ < settings_.sample) return false;
  requests_ = 0;
  return true;
}

void QueryLog::write(const Exchange& exchange, ExchangeEnd end, ByteView request,
                     ByteView response, const timespec& sent) {
  if (!settings_.on) return;
  if (!sender_.is_open()) return sender_.drop();
  line_.clear();
  put_query_log_line(exchange, end, request, response, sent, line_);
  sender_.push({ByteView(reinterpret_cast<const std::uint8_t*>(line_.data()), line_.size())});
}

}  // namespace pando::worker
