#include "gallop/compile/codegen/compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/hash.h"
#include "gallop/base/library.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/base/text.h"
#include "gallop/base/thread_pool.h"
#include "gallop/compile/codegen/cuda_compiler.h"
#include "gallop/compile/codegen/kernel_cache.h"

namespace gallop::compile {

namespace {

// More in one file would delay the first results.
constexpr size_t kKernelsPerFile = 32;

std::vector<std::string> split_args(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> args;
  for (std::string word; stream >> word;) args.push_back(word);
  return args;
}

std::vector<std::string> flags_of(kernel::Isa isa) {
  // No contraction, as in the library's own kernels. Floating-point traps and errno are not used;
  // infinities and NaN are.
  std::vector<std::string> flags = split_args(
      "-std=c++20 -O2 -fPIC -shared -pipe -w -ffp-contract=off -fno-math-errno -fno-trapping-math "
      "-fwrapv -fno-strict-aliasing -fno-exceptions -fno-rtti -fvisibility=hidden");
  const char* extra = "-O3";
  if (isa == kernel::Isa::kAvx2) extra = "-mavx2 -mfma";
  if (isa >= kernel::Isa::kAvx512) {
    extra = "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512";
  }
  for (auto& word : split_args(extra)) flags.push_back(std::move(word));
  if (isa >= kernel::Isa::kAvx512Bf16) flags.emplace_back("-mavx512bf16");
  return flags;
}

// The first line that contains "error", else the first.
std::string error_line(const std::string& output) {
  std::istringstream stream(output);
  std::string first;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("error") != std::string::npos) return printable(line);
    if (first.empty()) first = printable(line);
  }
  return first.empty() ? "nothing" : first;
}

// Runs without input, in a process group that is killed as a whole.
ChildRun run_compiler(const std::vector<std::string>& command, double seconds,
                      const std::atomic<bool>& stop) {
  constexpr size_t kMostOutput = 65536;
  return run_to_end(
      {.program = command.front(),
       .arguments = {command.begin() + 1, command.end()},
       .input = "",
       .own_group = true},
      {.seconds = seconds, .stop = [&stop] { return stop.load(); }, .output_bytes = kMostOutput});
}

std::string why(const std::string& compiler, const ChildRun& run) {
  switch (run.cause) {
    case ChildRun::Cause::kTimedOut: return fmt::format("{} took too long", compiler);
    case ChildRun::Cause::kStopped: return "the program ended before";
    case ChildRun::Cause::kItself:
      return fmt::format("{} {} and says: {}", compiler, run.end.describe(),
                         error_line(run.output));
  }
  return {};
}

/// The system's compiler, or why there is none.
struct SystemCompiler {
  std::vector<std::string> command;
  std::string name;      // For messages.
  std::string identity;  // Everything that its output depends on.
  std::string missing;
};

std::optional<SystemCompiler> probe(const std::string& args, const std::atomic<bool>& stop,
                                    std::string& error) {
  SystemCompiler found{.command = split_args(args), .name = printable(args)};
  if (found.command.empty()) return std::nullopt;
  auto version = found.command;
  version.emplace_back("--version");
  try {
    const ChildRun run = run_compiler(version, 20, stop);
    found.identity = args + "\n" + run.output;
    if (run.is_good()) return found;
    error = why(found.name, run);
  } catch (const DeviceError& failure) {
    error = failure.what();
  }
  return std::nullopt;
}

SystemCompiler find_compiler(const std::string& wanted, const std::atomic<bool>& stop) {
  const char* cxx = std::getenv("CXX");
  std::string choice = wanted.empty() && cxx != nullptr ? cxx : wanted;
  std::string error;
  if (!split_args(choice).empty()) {
    if (auto found = probe(choice, stop, error)) return *found;
    return {.missing = error};
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (auto found = probe(name, stop, error)) return *found;
  }
  return {.missing = "there is no C++ compiler: neither $CXX nor c++, g++ or clang++ in $PATH"};
}

struct Job {
  KernelSource source;
  std::string key;
  std::promise<CompiledKernel> promise;
};
using Jobs = std::vector<std::shared_ptr<Job>>;

std::string kernels_fallback(size_t count, const std::string& reason) {
  return fmt::format("the step falls back to unfused operators for {} kernel{}: {}", count,
                     count == 1 ? "" : "s", reason);
}

void give_up(const Jobs& jobs, const std::string& reason) {
  for (const auto& job : jobs) {
    job->promise.set_value({.fallback_reason = kernels_fallback(jobs.size(), reason)});
  }
}

// Splits the jobs into parts of about the same total text length.
std::vector<Jobs> share_out(Jobs jobs, size_t threads) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a->source.text.size() > b->source.text.size();
  });
  const size_t files = std::max(std::min(threads, jobs.size()),
                                (jobs.size() + kKernelsPerFile - 1) / kKernelsPerFile);
  std::vector<Jobs> shares(files);
  std::vector<size_t> lengths(files);
  for (auto& job : jobs) {
    const auto least = std::min_element(lengths.begin(), lengths.end()) - lengths.begin();
    lengths[static_cast<size_t>(least)] += job->source.text.size();
    shares[static_cast<size_t>(least)].push_back(std::move(job));
  }
  return shares;
}

}  // namespace

struct KernelCompiler::State {
  CompilerOptions options;
  std::vector<std::string> flags;
  std::atomic<bool> stop = false;
  std::atomic<int64_t> waiting = 0, runs = 0;

  std::once_flag once;
  SystemCompiler compiler;
  std::optional<KernelCache> cache;
  std::string cache_fallback;

  std::mutex mutex;
  std::map<std::string, std::shared_future<CompiledKernel>> results;
  std::unique_ptr<CudaCompiler> cuda;
  std::unique_ptr<ThreadPool> pool;  // Destroyed first.

  void prepare();
  std::string key_of(const std::string& prefix, const KernelSource& source) const;
  bool from_cache(Job& job) const;
  void start(const std::string& prefix, const Jobs& jobs);
  void compile(const std::string& prefix, const Jobs& jobs);
  void compile_in(const fs::path& parent, const char* name, const std::string& prefix,
                  const Jobs& jobs);
  void finish(const fs::path& library, const Jobs& jobs);
  void give(Job& job, std::shared_ptr<void> library) const;
};

// Runs once, in the first task, as it runs the compiler to get its version.
void KernelCompiler::State::prepare() {
  std::call_once(once, [this] {
    compiler = find_compiler(options.command, stop);
    try {
      cache.emplace(options.cache_folder, options.cache_bytes);
    } catch (const DeviceError& error) {
      cache_fallback =
          fmt::format("each run compiles its fused kernels again: {}", printable(error.what()));
    }
  });
}

std::string KernelCompiler::State::key_of(const std::string& prefix,
                                          const KernelSource& source) const {
  Hasher hasher;
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    hasher.update(&size, sizeof size);
    hasher.update(text.data(), text.size());
  };
  add(prefix);
  add(source.text);
  add(compiler.identity);
  for (const std::string& flag : flags) add(flag);
  static const std::string kMachine = read_hardware().cpu_model;
  add(kMachine);
  return hasher.digest();
}

void KernelCompiler::State::give(Job& job, std::shared_ptr<void> library) const {
  void* function = dlsym(library.get(), job.source.symbol.c_str());
  if (function == nullptr) {
    job.promise.set_value(
        {.fallback_reason = kernels_fallback(1, "its library lacks " + job.source.symbol)});
    return;
  }
  job.promise.set_value(
      {.function = function, .library = std::move(library), .fallback_reason = cache_fallback});
}

bool KernelCompiler::State::from_cache(Job& job) const {
  if (!cache) return false;
  auto library = cache->find(job.key);
  if (!library || dlsym(library.get(), job.source.symbol.c_str()) == nullptr) return false;
  give(job, std::move(library));
  return true;
}

void KernelCompiler::State::start(const std::string& prefix, const Jobs& jobs) {
  prepare();
  if (stop || !compiler.missing.empty()) {
    give_up(jobs, stop ? "the program ended before" : compiler.missing);
    waiting -= static_cast<int64_t>(jobs.size());
    return;
  }
  Jobs missing;
  for (const auto& job : jobs) {
    job->key = key_of(prefix, job->source);
    if (!from_cache(*job)) missing.push_back(job);
  }
  waiting -= static_cast<int64_t>(jobs.size() - missing.size());
  if (missing.empty()) return;
  for (Jobs& share : share_out(std::move(missing), static_cast<size_t>(options.threads))) {
    pool->submit([this, prefix, share = std::move(share)] {
      compile(prefix, share);
      waiting -= static_cast<int64_t>(share.size());
    });
  }
}

void KernelCompiler::State::compile(const std::string& prefix, const Jobs& jobs) {
  // Without a cache, uses a temporary folder that is removed once the library is loaded.
  try {
    std::error_code error;
    const fs::path other = fs::temp_directory_path(error);
    if (cache) {
      compile_in(cache->folder(), kNewFolder, prefix, jobs);
    } else {
      compile_in(other, kNewFolderElsewhere, prefix, jobs);
    }
  } catch (const Error& error) {
    give_up(jobs, printable(error.what()));
  }
}

void KernelCompiler::State::compile_in(const fs::path& parent, const char* name,
                                       const std::string& prefix, const Jobs& jobs) {
  const TemporaryFolder folder(parent, name);
  const fs::path source = folder.path() / "kernels.cpp", library = folder.path() / "kernels.so";
  {
    FileWriter writer(source);
    writer.write(prefix);
    for (const auto& job : jobs) writer.write(job->source.text);
    writer.finish();
  }
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", library.string(), source.string(), "-lm"});
  if (!stop) ++runs;
  const ChildRun run = run_compiler(command, options.timeout_seconds, stop);
  if (run.is_good()) return finish(library, jobs);
  if (jobs.size() == 1 || run.cause != ChildRun::Cause::kItself) {
    return give_up(jobs, why(compiler.name, run));
  }
  // If one kernel fails to compile, the others must not.
  const auto middle = jobs.begin() + static_cast<ptrdiff_t>(jobs.size() / 2);
  compile(prefix, Jobs(jobs.begin(), middle));
  compile(prefix, Jobs(middle, jobs.end()));
}

void KernelCompiler::State::finish(const fs::path& library, const Jobs& jobs) {
  std::string error;
  auto loaded = load_library(library, error);
  if (!loaded) {
    return give_up(
        jobs, fmt::format("what {} made cannot be loaded: {}", compiler.name, printable(error)));
  }
  if (cache) {
    try {
      std::vector<std::string> keys;
      for (const auto& job : jobs) keys.push_back(job->key);
      cache->publish(library, keys);
    } catch (const Error& failure) {
      for (const auto& job : jobs) {
        void* function = dlsym(loaded.get(), job->source.symbol.c_str());
        job->promise.set_value(
            {.function = function,
             .library = loaded,
             .fallback_reason = fmt::format("each run compiles its fused kernels again: {}",
                                            printable(failure.what()))});
      }
      return;
    }
  }
  for (const auto& job : jobs) give(*job, loaded);
}

KernelCompiler::KernelCompiler(CompilerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->flags = flags_of(state_->options.isa);
  state_->pool = std::make_unique<ThreadPool>(std::max(1, state_->options.threads), "compile");
}

KernelCompiler::~KernelCompiler() { state_->stop = true; }

std::vector<std::shared_future<CompiledKernel>> KernelCompiler::submit(
    const std::string& prefix, std::vector<KernelSource> kernels) {
  std::vector<std::shared_future<CompiledKernel>> results;
  Jobs jobs, refused;
  {
    const std::lock_guard lock(state_->mutex);
    for (KernelSource& kernel : kernels) {
      const auto known = state_->results.find(kernel.symbol);
      if (known != state_->results.end()) {
        results.push_back(known->second);
        continue;
      }
      auto job = std::make_shared<Job>();
      job->source = std::move(kernel);
      results.push_back(job->promise.get_future().share());
      if (state_->waiting >= state_->options.queue) {
        refused.push_back(std::move(job));
        continue;
      }
      ++state_->waiting;
      state_->results.emplace(job->source.symbol, results.back());
      jobs.push_back(std::move(job));
    }
  }
  if (!refused.empty()) {
    give_up(refused, fmt::format("{} wait for the compiler already", state_->options.queue));
  }
  if (!jobs.empty()) {
    state_->pool->submit([this, prefix, jobs = std::move(jobs)] { state_->start(prefix, jobs); });
  }
  return results;
}

int64_t KernelCompiler::runs() const { return state_->runs; }

CudaCompiler& KernelCompiler::cuda() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->cuda) {
    const CompilerOptions& options = state_->options;
    state_->cuda =
        std::make_unique<CudaCompiler>(CudaCompilerOptions{.libraries = options.nvrtc,
                                                           .cache_folder = options.cache_folder,
                                                           .cache_bytes = options.cache_bytes,
                                                           .threads = options.threads});
  }
  return *state_->cuda;
}

const std::string& KernelCompiler::cuda_driver() const { return state_->options.cuda_driver; }

}  // namespace gallop::compile
