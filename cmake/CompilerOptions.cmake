if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  message(FATAL_ERROR "The processor is '${CMAKE_SYSTEM_PROCESSOR}'; Lacuna needs x86-64 with AVX2 (Haswell or later).")
endif()

# Each compiler warns of something else: errors are the warnings of those that the sources are checked with, Debian 12's GCC 12 and Clang 14.
set(is_checked OFF)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(is_checked ON)
endif()
option(LACUNA_WERROR "Warnings of the C++ compiler are errors" ${is_checked})
set(LACUNA_WERROR_FLAG $<$<BOOL:${LACUNA_WERROR}>:-Werror>)

# What every target of ours is compiled with: `lacuna::options`.
add_library(lacuna_options INTERFACE)
add_library(lacuna::options ALIAS lacuna_options)
target_include_directories(lacuna_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(lacuna_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow ${LACUNA_WERROR_FLAG} -fno-math-errno)
# Clang warns of each loop that it may vectorise (`omp simd`) and does not, which differs between instruction sets.
target_compile_options(lacuna_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
# In a unity build (a batch of sources compiled as one; most of a source's time are headers) GCC takes each for a header, in which a class may
# not hold what is in an anonymous namespace.
if(CMAKE_UNITY_BUILD)
  target_compile_options(lacuna_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# The floor of the whole program. A target that is compiled for a later instruction set says so by its property LACUNA_MARCH: flags of its
# own would come before this one, and the last -march holds.
set(march $<TARGET_PROPERTY:LACUNA_MARCH>)
target_compile_options(lacuna_options INTERFACE -march=$<IF:$<BOOL:${march}>,${march},haswell>)
if(LACUNA_SANITIZE)
  target_compile_options(lacuna_options INTERFACE -fsanitize=${LACUNA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(lacuna_options INTERFACE -fsanitize=${LACUNA_SANITIZE})
endif()
if(LACUNA_FUZZ)
  target_compile_options(lacuna_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(LACUNA_CUDA)
  target_compile_definitions(lacuna_options INTERFACE LACUNA_CUDA=1)
endif()

# For tests and the emulated kernels, after -O3: compilers take half as long for the ones and a quarter for the others.
set(LACUNA_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
