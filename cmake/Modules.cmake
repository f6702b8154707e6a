# gallop_module(NAME TORCH none|thin|full [PCH kind] [DEPS module...] [LIBS library...])
#
# One static library gallop_NAME from all sources in the current folder's NAME/ and its subfolders (except cpu/: see
# gallop_cpu_kernels). A module links only the modules below it, so a module with TORCH none cannot include LibTorch.
#   none  std only
#   thin  ATen/core/Tensor.h and single operators
#   full  torch/nn, autograd internals, c10d
#
# PCH kind: precompiled is cmake/pch/KIND.h instead of that of TORCH. Loading it costs time in each file: on a slow
# machine 0.6 s for thin, 1.8 s for ops and 3.7 s for full. A file that calls operators takes 3 s less with ops than with
# thin.
#
# COMMANDS: a module of the command line, with CLI11 and JSON precompiled and few optimizations (gallop_runs_once).
# LIGHT file...: sources of a module with LibTorch that do not need it. They form a separate library, gallop_NAME_light,
# which links those DEPS that have no LibTorch, and is linked by the module's library.
function(gallop_module name)
  cmake_parse_arguments(ARG "COMMANDS" "TORCH;PCH" "DEPS;LIBS;LIGHT" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH ${ARG_TORCH})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${name}/*.cpp ${name}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cpu/[^/]*$")
  list(TRANSFORM ARG_DEPS PREPEND gallop_)
  if(ARG_LIGHT)
    list(REMOVE_ITEM sources ${ARG_LIGHT})
    set(light_deps)
    foreach(dep IN LISTS ARG_DEPS)
      get_target_property(links ${dep} LINK_LIBRARIES)
      if(NOT "gallop_torch" IN_LIST links)
        list(APPEND light_deps ${dep})
      endif()
    endforeach()
    gallop_library(${name}_light none none "${ARG_COMMANDS}" "${ARG_LIGHT}" ${light_deps} gallop_fmt ${ARG_LIBS})
    list(APPEND ARG_DEPS gallop_${name}_light)
  endif()
  gallop_library(${name} ${ARG_TORCH} ${ARG_PCH} "${ARG_COMMANDS}" "${sources}" ${ARG_DEPS} gallop_fmt ${ARG_LIBS})
endfunction()

# gallop_library(NAME TORCH PCH COMMANDS SOURCES [library...])
function(gallop_library name torch pch commands sources)
  set(target gallop_${name})
  add_library(${target} STATIC ${sources})
  add_library(gallop::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ARGN})
  if(NOT torch STREQUAL "none")
    target_link_libraries(${target} PUBLIC gallop_torch)
  endif()
  if(commands)
    gallop_runs_once(${target})
    gallop_precompile(${target} commands_${pch})
  else()
    gallop_precompile(${target} ${pch})
  endif()
  set_property(GLOBAL APPEND PROPERTY GALLOP_MODULES ${target})
endfunction()

# One precompiled header per kind, built once and shared by all targets of that kind, which have the same options.
function(gallop_precompile target kind)
  get_property(owner GLOBAL PROPERTY GALLOP_PCH_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch/${kind}.h)
    set_property(GLOBAL PROPERTY GALLOP_PCH_${kind} ${target})
  endif()
endfunction()

# Code that runs once, such as commands and tests, compiles in a third less time with fewer optimizations, with which
# g++ 12 reports false warnings for the ends of strings.
function(gallop_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1 -Wno-stringop-overread -Wno-array-bounds>)
endfunction()

# gallop_cpu_kernels(NAME): compiles the sources of the module's folder cpu/ once for each instruction set that
# kernel/isa.h names, and adds them to the module.
function(gallop_cpu_kernels name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/cpu/*.cpp)
  set(isas baseline)
  set(baseline_options)
  set(avx2_options -mavx2 -mfma)
  set(avx512_options -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
  set(avx512bf16_options ${avx512_options} -mavx512bf16)
  set(amx_options ${avx512bf16_options} -mamx-tile -mamx-bf16)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND isas avx2 avx512 avx512bf16 amx)
  endif()
  if(NOT GALLOP_SANITIZE)  # With sanitizers, it takes minutes to compile.
    set(optimize -O3)
  endif()
  foreach(isa IN LISTS isas)
    set(target gallop_${name}_${isa})
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    # g++ 12 warns about the undefined registers of its own intrinsics (GCC bug 105593).
    target_compile_options(${target} PRIVATE ${optimize} -ffp-contract=off -Wno-uninitialized -Wno-maybe-uninitialized ${${isa}_options})
    target_sources(gallop_${name} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

# gallop_test(NAME [LONG] [LABELS label...] [DEPS module...] [SHARDS count] [PARALLEL suite...]): one GoogleTest program
# from tests/unit/NAME/. Starting LibTorch takes longer than most tests, so each shard (unit.NAME, or unit.NAME.1 and so
# on) is one process, in which tests/unit/run_suite.py reports each test that fails. Tests run in parallel; if each had
# a thread for every core, they would wait for each other three times as long as they compute. Therefore each has one
# thread unless it requests more; an eighth of the suites of PARALLEL runs again with two (unit.NAME.threads).
# LONG: some tests are instantiated as Long/..., which `make test-long` runs (unit.NAME.long).
function(gallop_test name)
  cmake_parse_arguments(ARG "LONG" "SHARDS" "DEPS;LABELS;PARALLEL" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/${name}/*.cpp)
  set(target test_${name})
  set(kind test)
  add_executable(${target} ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/unit/left_behind.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE gallop_fixtures)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE gallop_${dep})
    get_target_property(links gallop_${dep} LINK_LIBRARIES)
    if("gallop_torch" IN_LIST links)
      set(seeded ${CMAKE_CURRENT_SOURCE_DIR}/unit/seeded.cpp)
      set(kind test_torch)
    endif()
  endforeach()
  target_sources(${target} PRIVATE ${seeded})
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  gallop_runs_once(${target})
  gallop_precompile(${target} ${kind})

  if(NOT ARG_SHARDS OR ARG_SHARDS EQUAL 1)
    gallop_suite(${name} unit "${ARG_LABELS}" 1)
  else()
    foreach(shard RANGE 1 ${ARG_SHARDS})
      gallop_suite(${name}.${shard} unit "${ARG_LABELS}" 1 --shard ${shard}/${ARG_SHARDS})
    endforeach()
  endif()
  if(ARG_PARALLEL)
    list(TRANSFORM ARG_PARALLEL APPEND ".*")
    list(JOIN ARG_PARALLEL ":" filter)
    gallop_suite(${name}.threads unit "${ARG_LABELS}" 2 --shard 1/8 --gtest_filter=${filter})
  endif()
  if(ARG_LONG)
    gallop_suite(${name}.long long "${ARG_LABELS}" 1 --long)
  endif()
endfunction()

# gallop_suite(NAME KIND LABELS THREADS [argument...]): a test unit.NAME that runs a part of the caller's test program.
function(gallop_suite name kind labels threads)
  add_test(NAME unit.${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/unit/run_suite.py
                                     $<TARGET_FILE:${target}> --name unit.${name} ${ARGN})
  # Each test has its own time limit; the longest programs start first.
  set_tests_properties(unit.${name} PROPERTIES LABELS "${kind};${labels}" TIMEOUT 7200 PROCESSORS ${threads} COST 30
                                               ENVIRONMENT OMP_NUM_THREADS=${threads})
endfunction()

# gallop_fuzz(NAME [DEPS module...] [SOURCES file...]): tests/fuzz/NAME_fuzz.cpp over deterministic mutations of its seeds.
function(gallop_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
  set(target fuzz_${name})
  add_executable(${target} fuzz/${name}_fuzz.cpp fuzz/driver.cpp ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE gallop_${dep})
  endforeach()
  add_test(NAME fuzz.${name} COMMAND ${target})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()
