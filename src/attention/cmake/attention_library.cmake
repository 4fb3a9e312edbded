# attention_library(NAME TYPES ... PATTERNS ... NORMS ... [TYPE_FOLDER dir]) declares lacuna_NAME: the core with these types, patterns and norms.
# Types are looked for in TYPE_FOLDER (how the tests add one of their own), then in attention/types/.

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ATTENTION_FOLDER)

# Instruction sets that row maps and core are compiled for, and their compiler flags: the best one is chosen at run time.
set(ATTENTION_TARGETS avx2 avx512)
set(ATTENTION_FLAGS_avx2 -march=haswell -maes -mpclmul) # Highway counts AES as a part of AVX2
set(ATTENTION_FLAGS_avx512 -march=skylake-avx512)

# Writes `file` from `template` and adds it to `sources`. These files are small and do without the precompiled header.
macro(attention_source template file)
  configure_file(${ATTENTION_FOLDER}/cmake/${template} ${file} @ONLY)
  set_source_files_properties(${file} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  list(APPEND sources ${file})
endmacro()

# The same, once for each instruction set.
macro(attention_simd_sources template file)
  foreach(TARGET IN LISTS ATTENTION_TARGETS)
    attention_source(${template} ${file}_${TARGET}.cpp)
    set_source_files_properties(${file}_${TARGET}.cpp PROPERTIES COMPILE_OPTIONS "${ATTENTION_FLAGS_${TARGET}}")
  endforeach()
endmacro()

# What does not depend on the lists, compiled once.
function(attention_core)
  set(sources alignment_guide.cpp attention.cpp call.cpp dense_weights.cpp plan.cpp reference.cpp registry.cpp regularizer.cpp rows/dropout.cpp norms/rms.cpp
    cpu/core_bf16.cpp cpu/core_plain.cpp cpu/run.cpp cpu/parts.cpp cpu/step.cpp gpu/block_schedule.cpp gpu/flash.cpp gpu/one_query_run.cpp gpu/run.cpp)
  list(TRANSFORM sources PREPEND ${ATTENTION_FOLDER}/)
  set_source_files_properties(${ATTENTION_FOLDER}/cpu/core_bf16.cpp PROPERTIES COMPILE_OPTIONS "-march=cooperlake;-mamx-tile;-mamx-bf16" SKIP_PRECOMPILE_HEADERS ON)
  attention_simd_sources(core_simd.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/core/core)
  add_library(lacuna_attention_core OBJECT ${sources})
  target_link_libraries(lacuna_attention_core PUBLIC lacuna::options lacuna_torch lacuna_base lacuna_config PkgConfig::highway)
  target_precompile_headers(lacuna_attention_core REUSE_FROM lacuna_torch)
endfunction()

# Writes the kernels of one kind (attention/gpu/kernels.h) for the types of the library and gives the files.
macro(attention_kernels kind extension launch block files)
  set(KIND ${kind})
  set(LAUNCH ${launch})
  set(BLOCK "${block}")
  set(KERNEL_DECLARATIONS)
  set(KERNEL_NAMES)
  set(${files})
  foreach(TYPE IN LISTS arg_TYPES)
    set(TYPE_HEADER ${TYPE_HEADER_${TYPE}})
    configure_file(${ATTENTION_FOLDER}/cmake/type_kernels.cpp.in ${folder}/${kind}_${TYPE}.${extension} @ONLY)
    list(APPEND ${files} ${folder}/${kind}_${TYPE}.${extension})
    string(APPEND KERNEL_DECLARATIONS "TypeKernels ${kind}_kernels_of_${TYPE}();\n")
    list(APPEND KERNEL_NAMES "${kind}_kernels_of_${TYPE}()")
  endforeach()
  list(JOIN KERNEL_NAMES ", " KERNEL_NAMES)
  configure_file(${ATTENTION_FOLDER}/cmake/kernel_list.cpp.in ${folder}/${kind}_kernels.cpp @ONLY)
endmacro()

function(attention_library name)
  cmake_parse_arguments(arg "" "TYPE_FOLDER" "TYPES;PATTERNS;NORMS" ${ARGN})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(sources)
  foreach(TYPE IN LISTS arg_TYPES)
    set(TYPE_HEADER attention/types/${TYPE}.h)
    set(TYPE_FILE ${ATTENTION_FOLDER}/types/${TYPE}.h)
    if(arg_TYPE_FOLDER AND EXISTS ${arg_TYPE_FOLDER}/${TYPE}.h)
      set(TYPE_FILE ${arg_TYPE_FOLDER}/${TYPE}.h)
      set(TYPE_HEADER ${TYPE_FILE})
    endif()
    set(TYPE_HEADER_${TYPE} ${TYPE_HEADER})
    attention_source(type.cpp.in ${folder}/${TYPE}.cpp)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TYPE_FILE})
    file(STRINGS ${TYPE_FILE} learns REGEX "attention/rows/row_numbers\\.h")
    if(learns) # it holds a module, which needs LibTorch's headers
      set_source_files_properties(${folder}/${TYPE}.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS OFF)
    endif()
    attention_simd_sources(type_simd.cpp.in ${folder}/${TYPE})
    string(APPEND TYPE_DECLARATIONS "extern const TypeEntry kType_${TYPE};\n")
    list(APPEND TYPE_NAMES "&kType_${TYPE}")
  endforeach()
  foreach(PATTERN IN LISTS arg_PATTERNS)
    attention_source(pattern.cpp.in ${folder}/pattern_${PATTERN}.cpp)
    string(APPEND PATTERN_DECLARATIONS "extern const PatternEntry kPattern_${PATTERN};\n")
    list(APPEND PATTERN_NAMES "&kPattern_${PATTERN}")
  endforeach()
  foreach(NORM IN LISTS arg_NORMS)
    configure_file(${ATTENTION_FOLDER}/cmake/norm.cpp.in ${folder}/norm_${NORM}.cpp @ONLY)
    list(APPEND sources ${folder}/norm_${NORM}.cpp)
    string(APPEND NORM_DECLARATIONS "extern const NormEntry kNorm_${NORM};\n")
    list(APPEND NORM_NAMES "&kNorm_${NORM}")
  endforeach()
  foreach(kind TYPE PATTERN NORM)
    list(JOIN ${kind}_NAMES ", " ${kind}_NAMES)
  endforeach()
  configure_file(${ATTENTION_FOLDER}/cmake/lists.cpp.in ${folder}/lists.cpp @ONLY)

  attention_kernels(gpu cu attention/gpu/launch.h Block files)
  gpu_sources(${name} sources ${files} ${ATTENTION_FOLDER}/gpu/gpu.cu)
  if(LACUNA_CUDA)
    list(APPEND sources ${folder}/gpu_kernels.cpp)
  endif()

  lacuna_library(${name} TORCH SOURCES ${sources} ${folder}/lists.cpp $<TARGET_OBJECTS:lacuna_attention_core>
    LINKS lacuna_base lacuna_config lacuna_kernels PkgConfig::highway $<$<BOOL:${LACUNA_CUDA}>:CUDA::cudart_static>)

  # lacuna_NAME_emulated: the same kernels for the CPU, for tests.
  attention_kernels(emulated cpp emulated_launch.h "EmulatedBlock<1, 1>" emulated)
  attention_kernels(threaded cpp emulated_launch.h "EmulatedBlock<4, 2>" threaded)
  add_library(lacuna_${name}_emulated STATIC EXCLUDE_FROM_ALL
    ${emulated} ${threaded} ${folder}/emulated_kernels.cpp ${folder}/threaded_kernels.cpp)
  set_target_properties(lacuna_${name}_emulated PROPERTIES UNITY_BUILD OFF) # ten of them in one would take a compiler minutes
  target_compile_options(lacuna_${name}_emulated PRIVATE ${LACUNA_TEST_OPTIONS})
  target_link_libraries(lacuna_${name}_emulated PUBLIC lacuna::options Threads::Threads)
  target_include_directories(lacuna_${name}_emulated PUBLIC
    ${PROJECT_SOURCE_DIR}/tests/contract  # emulated_block.h, emulated_launch.h
    ${PROJECT_SOURCE_DIR}/tests/kernels)  # turns.h
endfunction()
