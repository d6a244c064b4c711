#include "manager/verifier/zone_verifier.h"

#include <unistd.h>

#include "base/progress.h"
#include "config/files.h"
#include "manager/support/zone_text_records.h"
#include "manager/verifier/program_run.h"

namespace pando::manager {

namespace {

/// The variables have the names of NSD's verifiers, as far as they apply here.
std::vector<std::string> environment_for(const zone::ZoneView& zone) {
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
          fmt::format("VERIFY_ZONE={}", to_text(zone.apex())),
          fmt::format("VERIFY_SERIAL={}", zone.serial().value), "VERIFY_ZONE_ON_STDIN=yes"};
}

std::string end_text(const VerifierEnd& end) {
  switch (end.kind) {
    case VerifierEnd::Kind::kExited:
      return fmt::format("exit status {}", end.value);
    case VerifierEnd::Kind::kSignalled:
      return fmt::format("ended by signal {}", end.value);
    case VerifierEnd::Kind::kNotStarted:
      return fmt::format("not started: {}", end.reason);
  }
  return {};
}

/// An error of the zone itself; the program's end is for finish().
Status feed(ProgramRun& run, const zone::ZoneView& zone) {
  bool wanted = true;
  dns::ZoneTextWriter writer(zone.apex(), {}, [&](std::string_view text) -> Status {
    auto written = run.write(text);
    wanted = written.has_value();
    return written;
  });
  auto fed = write_zone_records(writer, zone);
  return wanted ? fed : Status();
}

}  // namespace

ZoneVerifier::ZoneVerifier(ZoneVerifiers& owner, std::vector<std::string> words,
                           std::chrono::milliseconds most_time)
    : owner_(owner), words_(std::move(words)), most_time_(most_time) {}

bool ZoneVerifier::is_slow(dns::NameView zone) const {
  return owner_.places_.is_slow(zone, ProgramPlaces::Clock::now());
}

asio::thread_pool& ZoneVerifier::pool() const { return owner_.threads_->pool(); }

std::optional<std::string> ZoneVerifier::refusal(const zone::ZoneView& zone) const {
  const auto refused = [&](std::string_view reason) {
    return fmt::format("refused by {}: {}", words_.front(), reason);
  };
  const auto is_over = [this, work = Progress::here()] {
    return owner_.stopped_.load(std::memory_order_relaxed) ||
           (work != nullptr && work->is_given_up());
  };
  if (is_over()) return refused(kGivenUp);
  if (const std::string problem = config::program_problem(words_.front(), ::geteuid());
      !problem.empty())
    return refused(problem);
  const auto place = owner_.places_.wait(zone.apex(), words_.front(), most_time_, is_over);
  if (!place) return refused(kGivenUp);
  if (Progress* const work = Progress::here()) work->begin(Progress::Phase::kJudging, 0);
  const VerifierCommand command{owner_.rights_.user, words_, environment_for(zone)};
  auto run = ProgramRun::start(command, owner_.rights_.launcher, most_time_, &owner_.stopped_);
  if (!run) return refused(run.error().text);
  if (auto fed = feed(**run, zone); !fed) return refused(fed.error().text);
  const auto end = (*run)->finish();
  if (!end) return refused(end.error().text);
  if (end->kind == VerifierEnd::Kind::kExited && end->value == 0) return std::nullopt;
  const std::string line = (*run)->first_line();
  return refused(line.empty() ? end_text(*end) : fmt::format("{}: {}", end_text(*end), line));
}

ZoneVerifierPtr ZoneVerifiers::of(const config::ZoneOptions& options) {
  if (options.verify_command.empty()) return nullptr;
  if (!threads_) threads_.emplace(ProgramPlaces::kThreads);
  auto known = last_.lock();
  if (known && last_words_ == options.verify_command && last_time_ == options.verify_time)
    return known;
  last_words_ = options.verify_command;
  last_time_ = options.verify_time;
  auto made = std::make_shared<const ZoneVerifier>(*this, last_words_, last_time_);
  last_ = made;
  return made;
}

void ZoneVerifiers::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  if (!threads_) return;
  threads_->pool().stop();
  threads_->pool().join();
}

}  // namespace pando::manager
