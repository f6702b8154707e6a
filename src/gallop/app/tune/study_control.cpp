#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/tune/study_text.h"

namespace gallop::app {

namespace {

constexpr int64_t kMostMore = 1'000'000'000;

ExitCode control(const tune::TuneRegistries& registries, const tune::StudyPlace& place,
                 const tune::Control& request) {
  place.open_study_client(registries)->control(request);
  fmt::print("{}\n", progress_text(place.read()));
  return ExitCode::kDone;
}

}  // namespace

ExitCode tune_stop(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Stop a study: no more trials are started; running ones finish.\n\n"
      "Example: gallop tune stop my-study",
      "gallop tune stop");
  WhichStudy which;
  which.add_to(parser);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  return control(command.tune(), which.find(),
                 {.kind = tune::Control::Kind::kStop, .reason = "by 'gallop tune stop'"});
}

ExitCode tune_resume(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Resume a stopped study, optionally with more trials. 'gallop tune SWEEP' then runs them.\n\n"
      "Example: gallop tune resume my-study --more 20",
      "gallop tune resume");
  WhichStudy which;
  which.add_to(parser);
  int64_t more = 0;
  parser.add_option("--more", more, "number of additional trials")
      ->check(CLI::Range(int64_t{0}, kMostMore));
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::StudyPlace place = which.find();
  return control(
      command.tune(), place,
      {.kind = tune::Control::Kind::kResume, .wanted = place.read().wanted_trials() + more});
}

ExitCode tune_retry(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Queue the failed trials of a study again.\n\n"
      "Example: gallop tune retry my-study",
      "gallop tune retry");
  WhichStudy which;
  which.add_to(parser);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  return control(command.tune(), which.find(), {.kind = tune::Control::Kind::kRetry});
}

}  // namespace gallop::app
