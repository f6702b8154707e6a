#include "gallop/compile/codegen/compiler.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/kernel_cache.h"
#include "unit/compile/cache_folder.h"
#include "unit/variable.h"

namespace gallop::compile {
namespace {

KernelSource returns(int number) {
  const std::string symbol = fmt::format("returns_{}", number);
  return {.symbol = symbol,
          .text = fmt::format("extern \"C\" __attribute__((visibility(\"default\"))) int {}() {{ "
                              "return {}; }}\n",
                              symbol, number)};
}

int call(const CompiledKernel& kernel) {
  return reinterpret_cast<int (*)()>(kernel.function)();  // NOLINT: what dlsym gives
}

CompiledKernel compile_one(KernelCompiler& compiler, KernelSource source) {
  return compiler.submit("", {std::move(source)})[0].get();
}

/// A compiler made of shell commands. It knows --version.
std::string fake_compiler(const CacheFolder& folder, const std::string& commands) {
  const fs::path path = folder.root() / "fake";
  std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo fake 1.0; exit 0; fi\n"
                      << commands << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> list;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".so") list.push_back(entry.path());
  }
  return list;
}

TEST(KernelCompiler, CompilesInOrderAndCachesOnDisk) {
  const CacheFolder folder;
  for (const int64_t runs : {2, 0}) {
    KernelCompiler compiler({.cache_folder = folder.path()});
    auto results = compiler.submit("", {returns(1), returns(2), returns(3)});
    for (int i = 0; i < 3; ++i) {
      const CompiledKernel& kernel = results[static_cast<size_t>(i)].get();
      ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason;
      EXPECT_EQ(kernel.fallback_reason, "");
      EXPECT_EQ(call(kernel), i + 1);
    }
    EXPECT_EQ(compiler.runs(), runs);
    EXPECT_EQ(call(compile_one(compiler, returns(2))), 2);
    EXPECT_EQ(compiler.runs(), runs) << "a symbol that is known is not compiled again";
  }
  struct stat info = {};
  ASSERT_EQ(stat(folder.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST(KernelCompiler, KeyDependsOnSourceFlagsAndCompiler) {
  const CacheFolder folder;
  {
    KernelCompiler compiler({.cache_folder = folder.path()});
    compile_one(compiler, returns(1));
    EXPECT_EQ(call(compiler.submit("static int x;", {returns(5)})[0].get()), 5);
  }
  EXPECT_EQ(libraries_in(folder.path()).size(), 2U);
  KernelCompiler flags({.cache_folder = folder.path(), .isa = kernel::Isa::kBaseline});
  compile_one(flags, returns(1));
  EXPECT_EQ(flags.runs(), kernel::best_isa() == kernel::Isa::kBaseline ? 0 : 1);
  KernelCompiler other({.command = "c++ -g0", .cache_folder = folder.path()});
  compile_one(other, returns(1));
  EXPECT_EQ(other.runs(), 1);
}

TEST(KernelCompiler, RebuildsDamagedFiles) {
  const CacheFolder folder;
  {
    KernelCompiler compiler({.cache_folder = folder.path()});
    compile_one(compiler, returns(1));
  }
  const auto whole = read_file(libraries_in(folder.path()).at(0));
  std::string changed = whole;
  changed[whole.size() / 2] ^= 1;
  const std::string damages[] = {whole.substr(0, whole.size() / 2), "", changed,
                                 "no library at all", whole.substr(0, whole.size() - 1)};
  for (const std::string& damage : damages) {
    const fs::path path = libraries_in(folder.path()).at(0);
    fs::remove(path);  // The loaded library must remain unchanged.
    std::ofstream(path, std::ios::binary) << damage;
    KernelCompiler compiler({.cache_folder = folder.path()});
    const CompiledKernel kernel = compile_one(compiler, returns(1));
    ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason;
    EXPECT_EQ(call(kernel), 1);
    EXPECT_EQ(compiler.runs(), 1);
    EXPECT_EQ(read_file(libraries_in(folder.path()).at(0)).size(), whole.size());
  }
}

TEST(KernelCompiler, ReportsFallbacksWithoutACompiler) {
  const CacheFolder folder;
  KernelCompiler compiler({.command = "/nowhere/c++", .cache_folder = folder.path()});
  auto results = compiler.submit("", {returns(1), returns(2)});
  for (auto& result : results) {
    EXPECT_EQ(result.get().function, nullptr);
    EXPECT_EQ(result.get().fallback_reason,
              "the step falls back to unfused operators for 2 kernels: cannot start /nowhere/c++: "
              "No such file or "
              "directory");
  }
}

TEST(KernelCompiler, FindsTheSystemsCompiler) {
  const CacheFolder folder;
  const std::string broken =
      fake_compiler(folder, "echo 'fake.cpp:1: error: no \033[31mway' >&2; exit 3");
  {
    const Variable cxx("CXX", broken);
    KernelCompiler compiler({.cache_folder = folder.path()});
    EXPECT_EQ(compile_one(compiler, returns(1)).fallback_reason,
              fmt::format("the step falls back to unfused operators for 1 kernel: {} ended with "
                          "exit code 3 and says: "
                          "fake.cpp:1: error: no ?[31mway",
                          broken));
  }
  const Variable cxx("CXX", std::nullopt), path("PATH", "/nowhere");
  KernelCompiler compiler({.cache_folder = folder.path()});
  EXPECT_EQ(compile_one(compiler, returns(1)).fallback_reason,
            "the step falls back to unfused operators for 1 kernel: there is no C++ compiler: "
            "neither $CXX nor "
            "c++, g++ or clang++ in $PATH");
}

TEST(KernelCompiler, ABadKernelDoesNotAffectOthers) {
  const CacheFolder folder;
  KernelCompiler compiler({.cache_folder = folder.path(), .threads = 1});
  auto results = compiler.submit(
      "", {returns(1), {.symbol = "bad", .text = "int bad( { }\n"}, returns(2), returns(3)});
  EXPECT_EQ(call(results[0].get()), 1);
  EXPECT_EQ(results[1].get().function, nullptr);
  EXPECT_NE(results[1].get().fallback_reason.find("error"), std::string::npos)
      << results[1].get().fallback_reason;
  EXPECT_EQ(results[1].get().fallback_reason.find('\n'), std::string::npos);
  EXPECT_EQ(call(results[2].get()), 2);
  EXPECT_EQ(call(results[3].get()), 3);
}

TEST(KernelCompiler, ReportsLibrariesThatCannotBeLoaded) {
  const CacheFolder folder;
  const std::string writes = "while [ \"$1\" != -o ]; do shift; done; echo junk > \"$2\"";
  KernelCompiler compiler(
      {.command = fake_compiler(folder, writes), .cache_folder = folder.path()});
  const CompiledKernel kernel = compile_one(compiler, returns(1));
  EXPECT_EQ(kernel.function, nullptr);
  EXPECT_NE(kernel.fallback_reason.find("cannot be loaded"), std::string::npos)
      << kernel.fallback_reason;
  EXPECT_TRUE(libraries_in(folder.path()).empty());
}

TEST(KernelCompiler, WorksWithoutAWritableCache) {
  const CacheFolder folder;
  std::ofstream(folder.root() / "file") << "in the way";
  KernelCompiler compiler({.cache_folder = folder.root() / "file" / "kernels"});
  const CompiledKernel kernel = compile_one(compiler, returns(4));
  ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason;
  EXPECT_EQ(call(kernel), 4);
  EXPECT_TRUE(kernel.fallback_reason.starts_with("each run compiles its fused kernels again: "))
      << kernel.fallback_reason;
}

TEST(KernelCompiler, RejectsACacheWritableByOthers) {
  const CacheFolder folder;
  fs::create_directories(folder.path());
  fs::permissions(folder.path(), fs::perms::all);
  KernelCompiler compiler({.cache_folder = folder.path()});
  const CompiledKernel kernel = compile_one(compiler, returns(4));
  ASSERT_NE(kernel.function, nullptr) << kernel.fallback_reason;
  EXPECT_NE(kernel.fallback_reason.find("others may write to it"), std::string::npos)
      << kernel.fallback_reason;
  EXPECT_TRUE(libraries_in(folder.path()).empty());
}

TEST(KernelCompiler, KillsSlowCompilers) {
  const CacheFolder folder;
  const std::string slow = fake_compiler(folder, "sleep 1000");
  {
    KernelCompiler compiler(
        {.command = slow, .cache_folder = folder.path(), .timeout_seconds = 0.2});
    EXPECT_NE(compile_one(compiler, returns(1)).fallback_reason.find("took too long"),
              std::string::npos);
  }
  std::shared_future<CompiledKernel> running, waiting;
  {
    KernelCompiler compiler({.command = slow, .cache_folder = folder.path(), .threads = 1});
    running = compiler.submit("", {returns(1)})[0];
    waiting = compiler.submit("", {returns(2)})[0];
    while (compiler.runs() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (auto& result : {running, waiting}) {
    EXPECT_EQ(result.get().fallback_reason,
              "the step falls back to unfused operators for 1 kernel: the program ended before");
  }
}

TEST(KernelCompiler, RejectsJobsBeyondItsQueue) {
  const CacheFolder folder;
  KernelCompiler compiler(
      {.command = fake_compiler(folder, "sleep 1000"), .cache_folder = folder.path(), .queue = 2});
  auto results = compiler.submit("", {returns(1), returns(2), returns(3)});
  EXPECT_EQ(
      results[2].get().fallback_reason,
      "the step falls back to unfused operators for 1 kernel: 2 wait for the compiler already");
}

bool asks_for_four(const CacheFolder& folder, int first) {
  KernelCompiler compiler({.cache_folder = folder.path()});
  std::vector<KernelSource> sources;
  for (int i = 0; i < 4; ++i) sources.push_back(returns(first + i));
  const auto results = compiler.submit("", sources);
  for (int i = 0; i < 4; ++i) {
    const CompiledKernel& kernel = results[static_cast<size_t>(i)].get();
    if (kernel.function == nullptr || !kernel.fallback_reason.empty() ||
        call(kernel) != first + i) {
      return false;
    }
  }
  return true;
}

// Their kernels overlap, so that some find files that others have just created.
TEST(KernelCompiler, ServesManyProcessesAtOnce) {
  const CacheFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(asks_for_four(folder, 10 + i % 2 * 2) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(libraries_in(folder.path()).size(), 6U);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".so") << entry.path();
  }
}

TEST(KernelCache, RemovesTheLeastRecentlyUsed) {
  const CacheFolder folder;
  {
    KernelCompiler compiler({.cache_folder = folder.path()});
    compile_one(compiler, returns(1));
  }
  const fs::path first = libraries_in(folder.path()).at(0);
  const int64_t bytes = static_cast<int64_t>(fs::file_size(first));
  const std::string key = first.stem().string();
  const KernelCache cache(folder.path(), 3 * bytes + bytes / 2);
  const fs::path library = folder.root() / "some.so";
  fs::copy(first, library);
  const auto age = [&](const std::string& name, int hours) {
    fs::last_write_time(folder.path() / (name + ".so"),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  cache.publish(library, {"b"});
  cache.publish(library, {"c"});
  fs::create_directories(folder.path() / "new-killed");
  age(key, 30);
  age("b", 20);
  age("c", 10);
  EXPECT_NE(cache.find(key), nullptr);  // Now the most recently used.
  cache.publish(library, {"d"});
  EXPECT_TRUE(fs::exists(first));
  EXPECT_FALSE(fs::exists(folder.path() / "b.so"));
  EXPECT_TRUE(fs::exists(folder.path() / "d.so"));
  EXPECT_FALSE(fs::exists(folder.path() / "new-killed")) << "who made it has ended";
}

}  // namespace
}  // namespace gallop::compile
