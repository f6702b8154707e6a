#pragma once

#include <dlfcn.h>

#include <string>

#include <gtest/gtest.h>

#include "gallop/compile/codegen/cuda_compiler.h"
#include "unit/compile/cache_folder.h"
#include "unit/fixtures.h"

namespace gallop::compile {

/// NVRTC with a driver that only tells what it is asked for (tests/fixtures/fake_cuda_driver.cpp).
/// Skips where there is no NVRTC.
class FakeDriverTest : public testing::Test {
 protected:
  inline static const std::string kFakeDriver = beside_program("libfake_cuda_driver.so").string();

  void SetUp() override {
    std::string why;
    if (!compiler_.is_there(why)) GTEST_SKIP() << why;
    driver_ = dlopen(kFakeDriver.c_str(), RTLD_NOW);
    ASSERT_NE(driver_, nullptr) << dlerror();
    take_calls();
  }
  void TearDown() override {
    if (driver_ == nullptr) return;
    fail("");
    dlclose(driver_);
  }
  /// The launches since the last call.
  std::string take_calls() {
    return reinterpret_cast<const char* (*)()>(dlsym(driver_, "fake_take_calls"))();
  }
  /// The function that shall fail from now on; "" for none.
  void fail(const char* function) {
    reinterpret_cast<void (*)(const char*)>(dlsym(driver_, "fake_fail"))(function);
  }

  CacheFolder folder_;
  CudaCompiler compiler_{{.libraries = {}, .cache_folder = folder_.path()}};
  void* driver_ = nullptr;
};

}  // namespace gallop::compile
