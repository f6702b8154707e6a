#pragma once

namespace gallop {

using ThreadCount = int();

/// How many threads LibTorch uses; set by the programs that have it, null in others.
ThreadCount*& threads_of_libtorch();

}  // namespace gallop
