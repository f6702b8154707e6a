#include "gallop/train/out_of_memory.h"

#include <array>
#include <new>
#include <string_view>

#include <c10/util/Exception.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/model/functional/failed_backward.h"

namespace gallop::train {

namespace {

// LibTorch's CPU allocator has no error class of its own, nor have GPU contexts and streams, the
// GPU libraries, and their workspaces.
constexpr std::array<std::string_view, 8> kWords = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",  // From cuDNN 9 on.
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED"};

size_t find_words(std::string_view message) {
  for (const std::string_view words : kWords) {
    const size_t at = message.find(words);
    if (at != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

std::string first_line(const std::string& text) {
  return printable(text.substr(0, text.find('\n')));
}

// The line that reports the missing memory; empty for other texts.
std::optional<std::string> words_of(const std::string& text) {
  const size_t at = find_words(text);
  return at == std::string::npos ? std::optional<std::string>() : first_line(text.substr(at));
}

}  // namespace

std::optional<std::string> out_of_memory(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError& full) {
    return first_line(full.what_without_backtrace());
  } catch (const c10::Error& other) {
    return words_of(other.what_without_backtrace());
  } catch (const UsageError& other) {  // Thrown by an operator of an exported model.
    return words_of(other.what());
  } catch (const std::bad_alloc&) {
    return "the system could not allocate memory";
  } catch (...) {
  }
  return {};
}

std::optional<std::string> run_in_memory(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    model::functional::drop_failed_backward();
    auto message = out_of_memory(std::current_exception());
    if (!message) throw;
    return message;
  }
  return {};
}

}  // namespace gallop::train
