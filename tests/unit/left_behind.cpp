// Fails a test that leaks state into the following tests, which share its process.
// Linked into every unit-test program.
#include "unit/left_behind.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

extern char** environ;

namespace gallop {
namespace {

// Set once by the program, for libraries that it may load later.
const std::set<std::string> kOfTheProgram = {"CUBLAS_WORKSPACE_CONFIG", "NCCL_SOCKET_IFNAME"};

using Facts = std::map<std::string, std::string>;

Facts facts_of_process() {
  Facts facts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t end = text.find('=');
    const std::string name = text.substr(0, end);
    if (!kOfTheProgram.contains(name)) facts["environment variable " + name] = text.substr(end + 1);
  }
  for (const auto& [name, resource] :
       {std::pair("RLIMIT_FSIZE", RLIMIT_FSIZE), std::pair("RLIMIT_NOFILE", RLIMIT_NOFILE),
        std::pair("RLIMIT_AS", RLIMIT_AS)}) {
    rlimit limit{};
    getrlimit(resource, &limit);
    facts[name] = std::to_string(limit.rlim_cur);
  }
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    facts["handler of signal " + std::to_string(number)] = action.sa_handler == SIG_DFL ? "default"
                                                           : action.sa_handler == SIG_IGN
                                                               ? "ignore"
                                                               : "a function";
    facts["signal " + std::to_string(number) + " blocked"] =
        sigismember(&blocked, number) == 1 ? "yes" : "no";
  }
  // Not the cores: on a busy machine a step shares them with others (kernel/shared_cores.h).
  const mode_t mask = umask(0);
  umask(mask);
  facts["umask"] = std::to_string(mask);
  facts["current folder"] = std::filesystem::current_path().string();
  if (threads_of_libtorch() != nullptr) {
    facts["LibTorch's threads"] = std::to_string(threads_of_libtorch()());
  }
  return facts;
}

std::string value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "unset" : "'" + found->second + "'";
}

class LeftBehind : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = facts_of_process(); }
  void OnTestEnd(const testing::TestInfo&) override {
    const Facts after = facts_of_process();
    Facts all = before_;
    all.insert(after.begin(), after.end());
    for (const auto& [name, value] : all) {
      if (value_of(before_, name) == value_of(after, name)) continue;
      ADD_FAILURE() << "the test leaves behind: " << name << " was " << value_of(before_, name)
                    << " and is " << value_of(after, name);
    }
  }

  Facts before_;
};

// GoogleTest owns its listeners.
[[maybe_unused]] const bool kLeftBehind = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new LeftBehind);
  return true;
}();

}  // namespace

ThreadCount*& threads_of_libtorch() {
  static ThreadCount* count = nullptr;
  return count;
}

}  // namespace gallop
