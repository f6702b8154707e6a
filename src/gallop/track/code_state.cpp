#include "gallop/track/code_state.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

constexpr double kSeconds = 20;
constexpr size_t kMostPatch = size_t{4} << 20;
constexpr size_t kMostRead = size_t{64} << 20;
// Files that usually contain secrets, by lower-case name.
constexpr std::array kSecrets = {".env",        ".env.*",  "*.env",        "*.pem",
                                 "*.key",       "*.p12",   "*.pfx",        "id_rsa*",
                                 ".netrc",      ".npmrc",  ".pypirc",      ".pgpass",
                                 "id_ed25519*", "secret*", "credentials*", ".git-credentials"};

bool may_hold_secrets(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return std::any_of(kSecrets.begin(), kSecrets.end(),
                     [&](const char* pattern) { return matches_pattern(name, pattern); });
}

// The output of git; nothing if it fails. The configuration cannot start other programs.
std::optional<std::string> git(const fs::path& folder, const std::vector<std::string>& arguments) {
  // The shell discards git's error messages.
  constexpr const char* kLine =
      "exec git --no-optional-locks -c core.fsmonitor=false -c core.quotePath=false \"$@\" 2> "
      "/dev/null";
  ChildCommand command{.program = "sh", .arguments = {"-c", kLine, "git", "-C", folder.string()}};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.input = "";
  command.keep_output = true;
  command.own_group = true;
  command.variables = {{"GIT_TERMINAL_PROMPT", "0"}, {"LC_ALL", "C"}};
  try {
    ChildRun run = run_to_end(command, {.seconds = kSeconds, .output_bytes = kMostRead});
    if (!run.is_good()) return {};
    return std::move(run.output);
  } catch (const DeviceError&) {
    return {};
  }
}

std::string line_of(const std::optional<std::string>& output) {
  return output ? output->substr(0, output->find('\n')) : std::string();
}

// Removes the user and password of "https://user:password@host/path".
std::string without_user(std::string address) {
  const size_t scheme = address.find("://");
  if (scheme == std::string::npos) return address;
  const size_t host = scheme + 3;
  const size_t at = address.substr(0, address.find('/', host)).rfind('@');
  if (at != std::string::npos && at >= host) address.erase(host, at + 1 - host);
  return address;
}

}  // namespace

std::optional<CodeState> read_code_state(const fs::path& folder) {
  const std::string top = line_of(git(folder, {"rev-parse", "--show-toplevel"}));
  if (top.empty()) return {};
  CodeState state;
  state.folder = top;
  state.commit = line_of(git(top, {"rev-parse", "--verify", "HEAD"}));
  state.branch = line_of(git(top, {"symbolic-ref", "--short", "HEAD"}));
  state.remote = without_user(line_of(git(top, {"remote", "get-url", "origin"})));
  if (state.commit.empty()) return state;
  std::vector<std::string> arguments{
      "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "HEAD", "--", "."};
  std::istringstream names(git(top, {"diff", "--name-only", "-z", "HEAD"}).value_or(""));
  for (std::string name; std::getline(names, name, '\0');) {
    if (!may_hold_secrets(name)) continue;
    arguments.push_back(":(exclude,top,literal)" + name);
    state.left_out.push_back(name);
  }
  state.patch = git(top, arguments).value_or("");
  state.patch_bytes = static_cast<int64_t>(state.patch.size());
  if (state.patch.size() > kMostPatch) state.patch.clear();
  return state;
}

}  // namespace gallop::track
