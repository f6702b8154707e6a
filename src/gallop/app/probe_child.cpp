#include "gallop/app/probe_child.h"

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/child_process.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// A probe reports on a line with one of these prefixes.
constexpr const char* kResult = "probe result: ";
constexpr const char* kNoMemory = "probe without memory: ";

// Extracts the text after a prefix, to the end of the line.
bool find_line_after(const std::string& text, const std::string& mark, std::string& line) {
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return false;
  const size_t begin = at + mark.size();
  line = text.substr(begin, text.find('\n', begin) - begin);
  return true;
}

}  // namespace

std::string error_line(std::string output) {
  while (output.ends_with('\n')) output.pop_back();
  const size_t end = output.rfind('\n');
  if (end != std::string::npos) output.erase(0, end + 1);
  constexpr std::string_view kName = "gallop: ";
  if (output.starts_with(kName)) output.erase(0, kName.size());
  return output;
}

ProbeResult run_probe(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& variables,
                      const StopRequest& stop) {
  const ChildRun run = run_to_end({.arguments = arguments, .variables = variables},
                                  {.stop = [&stop] { return stop.requested(); }});
  std::string text = run.output;
  const ChildEnd& end = run.end;
  ProbeResult result;
  if (run.cause == ChildRun::Cause::kStopped) {
    result.kind = ProbeResult::Kind::kStopped;
  } else if (find_line_after(text, kNoMemory, result.text)) {
    result.kind = ProbeResult::Kind::kNoMemory;
  } else if (end.signal == SIGKILL) {
    result.kind = ProbeResult::Kind::kNoMemory;
    result.text = "the system ended the process";
  } else if (end.exit_code == static_cast<int>(ExitCode::kStopped)) {
    result.kind = ProbeResult::Kind::kStopped;
  } else if (!end.is_good() || !find_line_after(text, kResult, result.text)) {
    const bool is_known = end.exit_code >= 2 && end.exit_code <= 4;
    const std::string last = error_line(std::move(text));
    throw Error(is_known ? static_cast<ExitCode>(end.exit_code) : ExitCode::kDevice,
                is_known ? last
                         : fmt::format("the process that measured a batch {}. {}", end.describe(),
                                       printable(last)));
  }
  return result;
}

void become_probe() { std::ofstream("/proc/self/oom_score_adj") << 1000; }

void tell_result(const std::string& text) {
  fmt::print("{}{}\n", kResult, text);
  std::fflush(stdout);
}

void tell_no_memory(const std::string& why) {
  const std::string line = fmt::format("\n{}{}\n", kNoMemory, why);
  // Write errors are ignored: the exit code reports it as well.
  static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
  _exit(static_cast<int>(ExitCode::kDevice));
}

}  // namespace gallop::app
